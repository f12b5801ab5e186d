// What happened beside what was said, in a sentence each.

import type { RequestEndPayload } from "../client/index.js";
import type { Item } from "./item-types.js";
import { visibleText } from "./visible-text.js";

type Notice = Extract<Item, { kind: "notice" }>;

/** Its text may be a provider's own: what cannot be seen in it is shown. */
export const notice = (key: string, tone: Notice["tone"], text: string, more = ""): Notice => ({
  kind: "notice",
  key,
  tone,
  text: visibleText(text),
  more,
});

/** Nothing for a Request that ended as it should. */
export function requestNotices(key: string, payload: RequestEndPayload): Notice[] {
  const { status, error, retry_in_ms: retryMs, truncated } = payload;
  if (status === "completed") {
    return truncated === true ? [notice(key, "warn", "The answer was cut off by the model's output limit.")] : [];
  }
  // The abort that follows says it.
  if (status === "aborted") return [];
  const why = sentence(error?.message ?? failureText(status));
  if (retryMs === undefined) return [notice(key, "bad", why)];
  return [notice(key, "warn", `${why} Trying again after ${Math.max(1, Math.round(retryMs / 1000))} s.`)];
}

/** What a status says where nothing more is known. */
export const failureText = (status: string): string =>
  status === "malformed" ? "The answer of the model could not be read." : "The request to the model failed.";

/** A refusal as a sentence: what is wrong, with the details that it does not name itself. */
export function refusalText(message: string, details: readonly { path: string; message: string }[]): string {
  const more = details
    .filter((each) => !message.includes(each.message))
    .map((each) => (each.path === "" ? each.message : `${each.path}: ${each.message}`));
  return sentence([message.replace(/^the body does not fit: /, ""), ...more].join("; "));
}

/** The text that a compaction put in the place of what went before. */
export const summaryText = (text: string): string =>
  text.replace(/^\[context_summary\]\s*|\s*\[\/context_summary\]\s*$/g, "");

export function abortText(reason: string | null | undefined): string {
  switch (reason) {
    case "server_restarted":
      return "Interrupted: the server was restarted.";
    case "shutdown":
      return "Interrupted: the server was shut down.";
    case "session_deleted":
      return "Interrupted: the Session was deleted.";
    case "user":
      return "You stopped this.";
    default:
      return "Interrupted.";
  }
}

/** With a capital and a full stop, as a person writes it. What begins with a name (`exec_command`, `cmd:`) keeps it. */
export function sentence(text: string): string {
  const trimmed = text.trim();
  if (trimmed === "") return "";
  const isWord = /^[a-z]+(?=[\s,.;!?…]|$)/.test(trimmed) && !/^omnid\b/.test(trimmed);
  const begun = isWord ? `${trimmed.charAt(0).toUpperCase()}${trimmed.slice(1)}` : trimmed;
  return `${begun}${/[.!?…]$/.test(trimmed) ? "" : "."}`;
}
