// Reconnect ladder: tries of one Request are numbered from 1 without holes, `retry_in_ms` stands only where another try
// follows (an abort may fall between), and never on an end or an error that has no ladder.

import { isPayload } from "../guards.js";
import type { ErrorKind, RequestEndPayload, StopReason } from "../payloads.js";
import { isUserInput } from "./facts.js";
import type { Look, Mode, Rule } from "./rule.js";

/** The status that each kind of error is seen as. A record that could not be written has no status of its own. */
const STATUS: Readonly<Record<Exclude<ErrorKind, "storage">, StopReason>> = {
  auth: "failed",
  invalid_request: "failed",
  context_overflow: "failed",
  content_filter: "failed",
  rate_limit: "timeout",
  overloaded: "timeout",
  network: "timeout",
  timeout: "timeout",
  malformed: "malformed",
  unknown: "failed",
};
const NO_LADDER: ReadonlySet<ErrorKind> = new Set(["auth", "invalid_request", "content_filter", "storage"]);

interface Last {
  place: number;
  attempt: number | undefined;
  /** `retry`: another try was promised. `overflow`: one may follow a compaction. */
  next: "retry" | "overflow" | "fresh";
}

export function retry(mode: Mode, joined: boolean): Rule {
  let last: Last | undefined;
  /** Something between two tries that may be the border of a Task, or a compaction in one. */
  let isLoose = false;
  /** The first try in view may be a later one of its Request. */
  let isUnseen = joined;
  return {
    name: "retry",
    push(message, look) {
      if (isPayload(message, "request_end")) {
        judgeEnd(message.payload, look);
        if (!isUnseen) judgeAttempt(message.payload.attempt, last, isLoose, look);
        last = { place: look.place, attempt: message.payload.attempt, next: nextOf(message.payload) };
        isLoose = false;
        isUnseen = false;
      } else if (isPayload(message, "request_begin") && last?.next === "retry") last = { ...last, place: -1 };
      else if (isPayload(message, "abort")) last = undefined;
      else if (isPayload(message, "compaction_begin")) isLoose = true;
      // A new Prompt: the Task before it ended without an abort, because its records could not be written.
      else if (mode === "trace" && isUserInput(message) && !look.facts.requestOpen) isLoose = true;
    },
    end({ report }) {
      if (last?.next === "retry" && last.place >= 0) report("retry_in_ms, and no try follows", { place: last.place });
    },
  };
}

function nextOf(payload: RequestEndPayload): Last["next"] {
  if (payload.retry_in_ms !== undefined) return "retry";
  return payload.error?.kind === "context_overflow" ? "overflow" : "fresh";
}

function judgeEnd(payload: RequestEndPayload, { report }: Look): void {
  const { status, error, retry_in_ms: wait } = payload;
  if (wait !== undefined && (status === "completed" || status === "aborted")) report(`retry_in_ms on ${status}`);
  if (error === undefined) return;
  if (wait !== undefined && NO_LADDER.has(error.kind)) report(`retry_in_ms on an error of kind ${error.kind}`);
  const expected = error.kind === "storage" ? status : STATUS[error.kind];
  if (status !== expected) report(`an error of kind ${error.kind} ends ${expected}, not ${status}`);
}

function judgeAttempt(attempt: number | undefined, last: Last | undefined, isLoose: boolean, { report }: Look): void {
  if (attempt === undefined) return;
  const isFirst = last === undefined || last.next === "fresh";
  const following = last?.attempt === undefined ? attempt : last.attempt + 1;
  const allowed = isFirst ? [1] : last.next === "retry" && !isLoose ? [following] : [1, following];
  if (!allowed.includes(attempt)) report(`attempt ${attempt}, expected ${allowed.join(" or ")}`);
}
