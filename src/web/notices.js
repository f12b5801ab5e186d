// @ts-check
// What happened beside what was said, in a sentence each.

/** @import { Item, Payload } from "./types.d.ts" */

/** @param {string} key @param {"quiet" | "warn" | "bad"} tone @param {string} text @returns {Item} */
export const notice = (key, tone, text, more = "") => ({ kind: "notice", key, tone, text, more });

/** @param {string} key @param {Payload} payload @returns {Item[]} */
export function requestNotices(key, payload) {
  const { status, error, retry_in_ms: retryMs, truncated } = payload;
  if (status === "completed") {
    return truncated === true ? [notice(key, "warn", "The answer was cut off by the model's output limit.")] : [];
  }
  // The abort that follows says it.
  if (status === "aborted") return [];
  const why = error === undefined ? `The request to the model ended: ${status}.` : error.message;
  if (retryMs === undefined) return [notice(key, "bad", why)];
  return [notice(key, "warn", `${why} Trying again after ${Math.round(retryMs / 1000)} s.`)];
}

/** @param {string} key @param {string} text @returns {Item} */
export const summaryNotice = (key, text) =>
  notice(
    key,
    "quiet",
    "The conversation so far was summarised for the model.",
    text.replace(/^\[context_summary\]\s*|\s*\[\/context_summary\]\s*$/g, ""),
  );

/** @param {string} key @param {Payload} payload @returns {Item} */
export function compactionNotice(key, payload) {
  if (payload.status === "completed") return notice(key, "quiet", "The context was compacted.");
  return notice(key, "warn", `Compacting the context ended: ${payload.status}. The old context stays.`);
}

/** @param {string | null | undefined} reason */
export function abortText(reason) {
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
