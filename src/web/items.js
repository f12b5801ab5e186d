// @ts-check
// From records and fragments to what a reader sees, in order: outputs and decisions hang on their calls, a subagent's
// messages in a card of its own, bookkeeping is left out.

import { slotOf } from "./fragments.js";

/** @import { Approval, Child, Entry, Fragment, Item, Payload, ToolItem, View } from "./types.d.ts" */

/** @typedef {Omit<ToolItem, "kind" | "state" | "progress"> & { decision: string, isWritten: boolean, isAnswered: boolean, slot: string }} Call */
/** @typedef {{ fragments: Fragment[], approvals: Approval[], progress: View["progress"], children: Record<string, Child>, isBusy: boolean, sessionId: string | undefined }} Surroundings */

/** Everything to show of a Session, oldest first. @param {View} view @returns {Item[]} */
export function itemsOf(view) {
  const own = view.fragments.filter((fragment) => (fragment.origin ?? []).length === 0);
  return fold(view.entries, own, view.first > 0, {
    fragments: view.fragments,
    approvals: view.approvals,
    progress: view.progress,
    children: view.children,
    isBusy: view.task !== null && view.task.state !== "idle",
    sessionId: undefined,
  });
}

/** @param {Entry[]} entries @param {Fragment[]} open @param {boolean} isCut older records are not loaded @param {Surroundings} around */
function fold(entries, open, isCut, around) {
  /** @type {(Item | { kind: "call", call: Call })[]} */
  const items = [];
  /** @type {Map<string, Call>} */
  const calls = new Map();
  const callOf = (/** @type {string} */ id, /** @type {string} */ key) => {
    const found = calls.get(id);
    if (found !== undefined) return found;
    const call = newCall(id, key);
    calls.set(id, call);
    items.push({ kind: "call", call });
    return call;
  };
  let inCompaction = false;
  // Prompts of no committed Request: a new context begins with them again, word for word.
  /** @type {string[]} */
  let uncommitted = [];
  /** @type {string[]} */
  let repeated = [];

  for (const { key, message } of entries) {
    const { payload } = message;
    const id = payload.tool_call_id ?? "";
    if (message.type === "session_meta") {
      repeated = uncommitted;
      continue;
    }
    switch (payload.type) {
      case "text": {
        const text = payload.text ?? "";
        if (payload.role === "user") {
          const isRepeat = repeated[0] === text;
          if (isRepeat) repeated = repeated.slice(1);
          else if (text.startsWith("[context_summary]")) items.push(summaryNotice(key, text));
          // A child's prompt is in the call that started it.
          else if (around.sessionId === undefined) {
            const steered = payload.steer_id !== undefined;
            items.push({ kind: "user", key, text, at: message.timestamp, steered });
            uncommitted = [...uncommitted, text];
          }
        } else if (!inCompaction && (text !== "" || payload.stop_reason === undefined)) {
          items.push({ kind: "text", key, text, open: false, stop: payload.stop_reason ?? "" });
        }
        break;
      }
      case "thinking":
        if (!inCompaction) items.push(thinkingItem(key, payload.thinking ?? "", false, payload.stop_reason));
        break;
      case "inline_thinking":
        items.push(thinkingItem(key, "", false, payload.stop_reason));
        break;
      case "tool_call":
        if (inCompaction) break;
        Object.assign(callOf(id, key), {
          name: payload.name ?? "",
          args: payload.arguments ?? "",
          isWritten: true,
          stop: payload.stop_reason ?? "",
        });
        break;
      case "approval_decision":
        // Its call may be on an older page, with nothing to hang this on.
        if (isCut && !calls.has(id)) break;
        Object.assign(callOf(id, key), {
          decision: payload.decision ?? "",
          decidedBy: payload.decided_by ?? "",
          reason: payload.reason ?? "",
        });
        break;
      case "tool_call_output":
        Object.assign(callOf(id, key), outputFields(payload));
        break;
      case "image_url":
        items.push({ kind: "image", key, url: payload.image_url ?? "", role: payload.role ?? "user" });
        break;
      case "inline_data":
        items.push(dataItem(key, payload));
        break;
      case "request_begin":
        repeated = [];
        break;
      case "request_end":
        if (payload.status === "completed") uncommitted = [];
        items.push(...requestNotices(key, payload));
        break;
      case "compaction_begin":
        inCompaction = true;
        break;
      case "compaction_end":
        inCompaction = false;
        items.push(compactionNotice(key, payload));
        break;
      case "abort":
        inCompaction = false;
        items.push(notice(key, "warn", abortText(payload.reason)));
        break;
      case "subagent":
        items.push(subagentItem(key, payload.session_id ?? "", around));
        break;
    }
  }
  for (const fragment of open) {
    if (fragment.type === "partial_text") {
      items.push({ kind: "text", key: fragment.key, text: fragment.content, open: true, stop: "" });
    } else if (fragment.type === "partial_thinking") {
      items.push(thinkingItem(fragment.key, fragment.content, true, undefined));
    } else if (fragment.type === "partial_tool_call") {
      Object.assign(callOf(fragment.toolCallId, fragment.key), { name: fragment.name, args: fragment.content });
    } else {
      const { content: output, images = [], toolCallId, key } = fragment;
      Object.assign(callOf(toolCallId, key), { output, images, hasOutput: output !== "" || images.length > 0 });
    }
  }
  const origin = open[0]?.origin ?? (around.sessionId === undefined ? [] : [around.sessionId]);
  return items.map((item) => (item.kind === "call" ? toolItem(item.call, origin, around) : item));
}

/** @param {string} id @param {string} key @returns {Call} */
const newCall = (id, key) => ({
  slot: id,
  key,
  name: "",
  args: "",
  isWritten: false,
  decision: "",
  decidedBy: "",
  reason: "",
  output: "",
  hasOutput: false,
  isAnswered: false,
  images: [],
  exitCode: null,
  stop: "",
});

/** @param {Payload} payload */
const outputFields = (payload) => ({
  output: payload.output ?? "",
  images: payload.images ?? [],
  hasOutput: true,
  isAnswered: true,
  exitCode: payload.exit_code ?? null,
  stop: payload.stop_reason ?? "",
});

/** @param {Call} call @param {string[]} origin @param {Surroundings} around @returns {ToolItem} */
function toolItem(call, origin, around) {
  const { decision, isWritten, isAnswered, slot: id, ...shown } = call;
  const progress = around.progress[slotOf({ origin, type: "partial_tool_call_output", toolCallId: id })];
  const isAsked = around.approvals.some(
    ({ sessionId, toolCall }) =>
      toolCall.payload.tool_call_id === id &&
      (around.sessionId === undefined ? !(sessionId in around.children) : sessionId === around.sessionId),
  );
  return {
    kind: "tool",
    ...shown,
    state: stateOf(call, isAsked, around.isBusy),
    progress: isAnswered || progress === undefined ? "" : `${progress.bytes} bytes so far\n${progress.tail}`,
  };
}

/** @param {Call} call @param {boolean} isAsked @param {boolean} isBusy @returns {ToolItem["state"]} */
function stateOf(call, isAsked, isBusy) {
  if (call.decision === "deny") return call.decidedBy === "abort" ? "aborted" : "denied";
  if (call.isAnswered) {
    if (call.stop === "timeout") return "timeout";
    if (call.stop === "aborted") return "aborted";
    return call.stop === "" || call.stop === "completed" ? "done" : "failed";
  }
  if (call.isWritten && call.stop !== "") return "cut";
  if (isAsked) return "approval";
  if (!call.isWritten && !call.hasOutput) return "writing";
  if (call.decision === "allow" || call.hasOutput) return isBusy ? "running" : "cut";
  return isBusy ? "waiting" : "cut";
}

/** @param {string} key @param {string} text @param {boolean} open @param {string | undefined} stop @returns {Item} */
const thinkingItem = (key, text, open, stop) => ({ kind: "thinking", key, text, open, stop: stop ?? "" });

/** @param {string} key @param {"quiet" | "warn" | "bad"} tone @param {string} text @returns {Item} */
const notice = (key, tone, text, more = "") => ({ kind: "notice", key, tone, text, more });

/** @param {string} key @param {Payload} payload @returns {Item} */
function dataItem(key, payload) {
  const { mime_type: type = "", data = "", role = "user", file_name: name } = payload;
  if (type.startsWith("image/")) return { kind: "image", key, url: `data:${type};base64,${data}`, role };
  return { kind: "file", key, name: name ?? type, role };
}

/** @param {string} key @param {string} sessionId @param {Surroundings} around @returns {Item} */
function subagentItem(key, sessionId, around) {
  const child = around.children[sessionId];
  const open = around.fragments.filter(({ origin = [] }) => origin[origin.length - 1] === sessionId);
  const entries = child === undefined ? [] : [...(child.before ?? []), ...child.since];
  return { kind: "subagent", key, sessionId, items: fold(entries, open, false, { ...around, sessionId }) };
}

/** @param {string} key @param {Payload} payload @returns {Item[]} */
function requestNotices(key, payload) {
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
const summaryNotice = (key, text) =>
  notice(
    key,
    "quiet",
    "The conversation so far was summarised for the model.",
    text.replace(/^\[context_summary\]\s*|\s*\[\/context_summary\]\s*$/g, ""),
  );

/** @param {string} key @param {Payload} payload @returns {Item} */
function compactionNotice(key, payload) {
  if (payload.status === "completed") return notice(key, "quiet", "The context was compacted.");
  return notice(key, "warn", `Compacting the context ended: ${payload.status}. The old context stays.`);
}

/** @param {string | null | undefined} reason */
function abortText(reason) {
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
