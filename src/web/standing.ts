// How things stand, in words: the connection, the Task, the tokens. Three different things.

import {
  type Connection,
  type ErrorKind,
  isPayload,
  type SessionUsage,
  type TokenCounts,
  type View,
} from "../client/index.js";
import { sentence } from "./notices.js";
import { unreachable } from "./unreachable.js";
import { visibleText } from "./visible-text.js";

export interface Standing {
  text: string;
  tone: "idle" | "busy" | "ask" | "warn" | "bad" | "live" | "lost";
  /** More about it, for who asks. */
  more: string;
}

export const secondsUntil = (at: string | number, now: number): number =>
  Math.max(0, Math.ceil((new Date(at).getTime() - now) / 1000));

/** How the connection fares. `isOnline` is what the browser says of the network. */
export function connectionText(connection: Connection, now: number, isOnline: boolean): Standing {
  switch (connection.status) {
    case "connecting":
      return { text: "Connecting…", tone: "busy", more: "" };
    case "live":
      if (!connection.resynced) return { text: "Live", tone: "live", more: "Everything is shown as it happens." };
      return {
        text: "Live",
        tone: "live",
        more: "Part of the stream was missed, so the history was read again: every complete message is here.",
      };
    case "polling":
      return {
        text: "Every 2 s",
        tone: "live",
        more: "Many tabs follow this server: this one looks every two seconds.",
      };
    case "waiting": {
      const why = connection.code === "shutdown" ? "The server is going down." : sentence(connection.reason);
      if (!isOnline) return { text: "Offline", tone: "lost", more: `There is no network. ${why}` };
      return { text: `Reconnecting in ${secondsUntil(connection.retryAt, now)} s`, tone: "lost", more: why };
    }
    case "gone":
      return { text: "Gone", tone: "lost", more: "This Session is not there any more." };
    case "closed":
      return { text: "Closed", tone: "lost", more: "" };
    default:
      return unreachable(connection);
  }
}

/** What the Task is doing. */
export function activityOf(view: View, now: number): Standing {
  const { task } = view;
  const say = (text: string, tone: Standing["tone"]): Standing => ({ text, tone, more: "" });
  if (task === null) return say("", "idle");
  const queued = task.queued > 0 ? `, ${task.queued} queued` : "";
  if (task.state === "idle") {
    const error = task.ended?.error;
    return error === undefined ? say(`Ready${queued}`, "idle") : say(visibleText(sentence(error.message)), "bad");
  }
  if (task.retry !== undefined) {
    const seconds = secondsUntil(task.retry.retryAt, now);
    // The seconds first: a phone has no room for all of it.
    return say(`Try ${task.retry.attempt + 1} in ${seconds} s: ${whyAgain(view)}${queued}`, "warn");
  }
  if (task.state === "compacting") return say(`Compacting the context${queued}`, "busy");
  if (view.approvals.length > 0) return say(`Waiting for your approval${queued}`, "ask");
  const open = view.fragments.at(-1);
  if (open?.type === "partial_text") return say(`Writing${queued}`, "busy");
  if (open?.type === "partial_thinking") return say(`Thinking${queued}`, "busy");
  return say(`Working${queued}`, "busy");
}

/** What happened to the Request that is tried again. */
function whyAgain({ messages }: View): string {
  const end = messages.findLast(({ message }) => isPayload(message, "request_end"))?.message;
  const error = end !== undefined && isPayload(end, "request_end") ? end.payload.error : undefined;
  if (error === undefined) return "request failed";
  const status = error.http_status;
  // With a status the provider did answer: how the try counts is not what happened.
  const what = status !== undefined && status >= 500 && error.kind !== "overloaded" ? undefined : FAILURES[error.kind];
  return status === undefined ? (what ?? "request failed") : `${what ?? statusText(status)} (${status})`;
}

const statusText = (status: number): string => (status >= 500 ? "error at the provider" : "request failed");

const FAILURES: Partial<Record<ErrorKind, string>> = {
  rate_limit: "rate limit reached",
  overloaded: "provider overloaded",
  network: "connection to the provider failed",
  timeout: "provider too slow",
  malformed: "answer not readable",
};

export function usageText(usage: SessionUsage | null): string {
  if (usage === null || usage.total === 0) return "";
  const { costUsd } = usage;
  const cost = costUsd === undefined ? "" : ` · $${costUsd.toFixed(costUsd < 0.1 ? 4 : 2)}`;
  return `${short(usage.cache_read + usage.cache_write)} in · ${short(usage.output)} out${cost}`;
}

/** A count with three digits at most. */
export function short(count: number): string {
  if (count < 1_000) return String(count);
  if (count < 1_000_000) return `${(count / 1_000).toFixed(count < 10_000 ? 1 : 0)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}

export const bytesText = (bytes: number): string =>
  bytes < 1024
    ? `${bytes} B`
    : bytes < 1_048_576
      ? `${(bytes / 1024).toFixed(1)} KB`
      : `${(bytes / 1_048_576).toFixed(1)} MB`;

const DAY_MS = 86_400_000;

/** A time as a list shows it: the hour today, the day before. */
export function whenText(at: string, now: number): string {
  const date = new Date(at);
  const isToday = new Date(now).toDateString() === date.toDateString();
  if (isToday) return date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const isNear = now - date.getTime() < 6 * DAY_MS;
  return date.toLocaleDateString([], isNear ? { weekday: "short" } : { day: "numeric", month: "short" });
}

/** Of the present context: neither a compaction's own Request nor one that the provider counted nothing for. */
export function lastRequest({ messages }: Pick<View, "messages">): TokenCounts | undefined {
  let isCompaction = false;
  for (let at = messages.length - 1; at >= 0; at -= 1) {
    const { message } = messages[at] as View["messages"][number];
    if (message.type === "session_meta") return undefined;
    if (isPayload(message, "compaction_begin")) isCompaction = false;
    else if (isPayload(message, "compaction_end")) {
      if (message.payload.status === "completed") return undefined;
      isCompaction = true;
    } else if (!isCompaction && isPayload(message, "token_usage") && message.payload.request.total > 0)
      return message.payload.request;
  }
  return undefined;
}
