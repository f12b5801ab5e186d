// @ts-check
// How things stand, in words: the connection, the Task, the tokens. Three different things.

/** @import { LinkState, TokenCounts, View } from "./types.d.ts" */

/** @param {string | number} at @param {number} now */
const secondsUntil = (at, now) => Math.max(0, Math.ceil((new Date(at).getTime() - now) / 1000));

/** @param {LinkState} link @param {number} now @returns {{ text: string, tone: string, more: string }} */
export function linkText(link, now) {
  switch (link.kind) {
    case "connecting":
      return { text: "Connecting…", tone: "wait", more: "" };
    case "live":
      if (!link.resynced) return { text: "Live", tone: "live", more: "Everything is shown as it happens" };
      return {
        text: "Live, resynced",
        tone: "live",
        more: "The place in the stream was gone; the history was read again",
      };
    case "polling":
      return {
        text: "Every 2 s",
        tone: "live",
        more: "Many tabs follow this server: this one looks every two seconds",
      };
    case "reconnecting":
      return { text: `Reconnecting in ${secondsUntil(link.at, now)} s`, tone: "lost", more: link.why };
    default:
      return { text: "Gone", tone: "lost", more: "This Session is not there any more" };
  }
}

/** What the Task is doing. @param {View} view @param {number} now @returns {{ text: string, tone: string }} */
export function activityOf(view, now) {
  const { task } = view;
  if (task === null) return { text: "", tone: "" };
  const queued = task.queued > 0 ? `, ${task.queued} queued` : "";
  if (task.state === "idle") return task.ended?.error === undefined ? idle(queued) : ended(task.ended.error.message);
  if (task.retry !== undefined) {
    const seconds = secondsUntil(task.retry.retryAt, now);
    return { text: `The model did not answer. Try ${task.retry.attempt + 1} in ${seconds} s${queued}`, tone: "warn" };
  }
  if (task.state === "compacting") return { text: `Compacting the context${queued}`, tone: "busy" };
  if (view.approvals.length > 0) return { text: `Waiting for your approval${queued}`, tone: "ask" };
  const open = view.fragments[view.fragments.length - 1];
  if (open?.type === "partial_text") return { text: `Writing${queued}`, tone: "busy" };
  if (open?.type === "partial_thinking") return { text: `Thinking${queued}`, tone: "busy" };
  return { text: `Working${queued}`, tone: "busy" };
}

/** @param {string} queued */
const idle = (queued) => ({ text: `Ready${queued}`, tone: "idle" });
/** @param {string} message */
const ended = (message) => ({ text: `The Task ended: ${message}`, tone: "bad" });

/** @param {TokenCounts | null} usage @param {number | undefined} costUsd */
export function usageText(usage, costUsd) {
  if (usage === null || usage.total === 0) return "";
  const input = usage.cache_read + usage.cache_write;
  const cost = costUsd === undefined ? "" : ` · $${costUsd.toFixed(costUsd < 0.1 ? 4 : 2)}`;
  return `${short(input)} in · ${short(usage.output)} out${cost}`;
}

/** @param {number} count */
function short(count) {
  if (count < 1_000) return String(count);
  if (count < 1_000_000) return `${(count / 1_000).toFixed(count < 10_000 ? 1 : 0)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}
