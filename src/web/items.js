// @ts-check
// From records and fragments to what a reader sees, in order: outputs and decisions hang on their calls, a subagent's
// messages in a card of its own, bookkeeping is left out.

import { slotOf } from "./fragments.js";
import { abortText, compactionNotice, notice, requestNotices, summaryNotice } from "./notices.js";

/** @import { Approval, Child, Entry, Fragment, Item, Message, Payload, ToolItem, View } from "./types.d.ts" */

/** @typedef {Omit<ToolItem, "kind" | "state" | "progress"> & { decision: string, isWritten: boolean, isAnswered: boolean, slot: string }} Call */
/** @typedef {{ fragments: Fragment[], approvals: Approval[], progress: View["progress"], children: Record<string, Child>, isBusy: boolean, sessionId: string | undefined }} Surroundings */

/** @typedef {Item | { kind: "call", call: Call }} Draft */
/**
 * @typedef {object} Folding
 * @property {Surroundings} around
 * @property {boolean} isCut
 * @property {boolean} inCompaction
 * @property {string[]} uncommitted prompts of no committed Request: a new context begins with them, word for word
 * @property {string[]} repeated those of them that are about to come again
 * @property {(item: Item) => void} add
 * @property {(id: string) => boolean} knows
 * @property {(id: string, key: string) => Call} callOf the call of an id, made here where it is new
 */

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

/**
 * @param {Entry[]} entries @param {Fragment[]} open @param {boolean} isCut older records are not loaded
 * @param {Surroundings} around @returns {Item[]}
 */
function fold(entries, open, isCut, around) {
  /** @type {Draft[]} */
  const items = [];
  /** @type {Map<string, Call>} */
  const calls = new Map();
  /** @type {Folding} */
  const folding = {
    around,
    isCut,
    inCompaction: false,
    uncommitted: [],
    repeated: [],
    add: (item) => items.push(item),
    knows: (id) => calls.has(id),
    callOf: (id, key) => {
      const found = calls.get(id);
      if (found !== undefined) return found;
      const call = newCall(id, key);
      calls.set(id, call);
      items.push({ kind: "call", call });
      return call;
    },
  };
  for (const { key, message } of entries) {
    if (message.type === "session_meta") folding.repeated = folding.uncommitted;
    else if (message.type === "event_msg") foldEvent(folding, key, message.payload);
    else foldContent(folding, key, message);
  }
  for (const fragment of open) foldFragment(folding, fragment);
  const origin = around.sessionId === undefined ? [] : [around.sessionId];
  return items.map((item) => (item.kind === "call" ? toolItem(item.call, origin, around) : item));
}

/** @param {Folding} folding @param {string} key @param {Message} message */
function foldContent(folding, key, message) {
  const { payload } = message;
  const { tool_call_id: id = "", stop_reason: stop = "" } = payload;
  // What was said to summarise the context is no part of the conversation; the summary itself is.
  const isOwn = payload.type === "tool_call_output" || (payload.text ?? "").startsWith("[context_summary]");
  if (folding.inCompaction && !isOwn) return;
  switch (payload.type) {
    case "text":
      if (payload.role === "user") foldPrompt(folding, key, message);
      else folding.add({ kind: "text", key, text: payload.text ?? "", open: false, stop });
      break;
    case "thinking":
    case "inline_thinking":
      folding.add({ kind: "thinking", key, text: payload.thinking ?? "", open: false, stop });
      break;
    case "tool_call":
      Object.assign(folding.callOf(id, key), {
        name: payload.name ?? "",
        args: payload.arguments ?? "",
        isWritten: true,
        stop,
      });
      break;
    case "tool_call_output":
      Object.assign(folding.callOf(id, key), outputFields(payload));
      break;
    case "image_url":
      folding.add({ kind: "image", key, url: payload.image_url ?? "", role: payload.role ?? "user" });
      break;
    case "inline_data":
      folding.add(dataItem(key, payload));
      break;
  }
}

/** @param {Folding} folding @param {string} key @param {Message} message */
function foldPrompt(folding, key, { payload, timestamp }) {
  const text = payload.text ?? "";
  if (folding.repeated[0] === text) {
    folding.repeated = folding.repeated.slice(1);
    return;
  }
  if (text.startsWith("[context_summary]")) return folding.add(summaryNotice(key, text));
  // A child's prompt is in the call that started it.
  if (folding.around.sessionId !== undefined) return;
  folding.add({ kind: "user", key, text, at: timestamp, steered: payload.steer_id !== undefined });
  folding.uncommitted = [...folding.uncommitted, text];
}

/** @param {Folding} folding @param {string} key @param {Payload} payload */
function foldEvent(folding, key, payload) {
  switch (payload.type) {
    case "approval_decision": {
      const { tool_call_id: id = "", decision = "", decided_by: decidedBy = "", reason } = payload;
      // Its call may be on an older page, with nothing to hang this on.
      if (folding.isCut && !folding.knows(id)) return;
      Object.assign(folding.callOf(id, key), { decision, decidedBy, reason: reason ?? "" });
      break;
    }
    case "request_begin":
      folding.repeated = [];
      break;
    case "request_end":
      if (payload.status === "completed") folding.uncommitted = [];
      for (const item of requestNotices(key, payload)) folding.add(item);
      break;
    case "compaction_begin":
      folding.inCompaction = true;
      break;
    case "compaction_end":
      folding.inCompaction = false;
      folding.add(compactionNotice(key, payload));
      break;
    case "abort":
      folding.inCompaction = false;
      folding.add(notice(key, "warn", abortText(payload.reason)));
      break;
    case "subagent":
      folding.add(subagentItem(key, payload.session_id ?? "", folding.around));
      break;
  }
}

/** @param {Folding} folding @param {Fragment} fragment */
function foldFragment(folding, { type, key, content, name, toolCallId, images = [] }) {
  switch (type) {
    case "partial_text":
      folding.add({ kind: "text", key, text: content, open: true, stop: "" });
      break;
    case "partial_thinking":
      folding.add({ kind: "thinking", key, text: content, open: true, stop: "" });
      break;
    case "partial_tool_call":
      Object.assign(folding.callOf(toolCallId, key), { name, args: content });
      break;
    default: {
      const hasOutput = content !== "" || images.length > 0;
      Object.assign(folding.callOf(toolCallId, key), { output: content, images, hasOutput });
    }
  }
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
