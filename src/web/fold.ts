// The fold over complete messages, the Session's own or a child's. It knows nothing of what is open.

import {
  type CompleteMessage,
  type EventPayload,
  type InlineDataPayload,
  isCompleteModelMessage,
  isEventMessage,
  type TextPayload,
  type ViewMessage,
} from "../client/index.js";
import type { Item } from "./item-types.js";
import { abortText, notice, requestNotices, summaryText } from "./notices.js";
import { isCopyOf, isSaid, isSamePrompt, isSteering } from "./said.js";
import { type Call, newCall, outputFields } from "./tool-calls.js";

export type FoldedEntry =
  | Exclude<Item, { kind: "tool" | "subagent" }>
  | { kind: "call"; call: Call }
  | { kind: "subagent"; key: string; sessionId: string };

export interface Folded {
  readonly entries: readonly FoldedEntry[];
  readonly calls: ReadonlyMap<string, Call>;
}

export interface FoldOptions {
  /** Ordinal of the first message. */
  first: number;
  /** Messages below this ordinal have their final place. */
  confirmed: number;
  isChild: boolean;
}

type Compaction = Extract<Item, { kind: "compaction" }>;
type Text = Extract<Item, { kind: "text" }>;

type Said = Extract<Item, { kind: "user" | "image" | "file" }>;

interface OpenPrompt {
  last: CompleteMessage;
  /** The part that may ask for all of it again: its first text, or its first part while it has none. */
  holder: Said;
}

interface Folding {
  options: FoldOptions;
  entries: FoldedEntry[];
  calls: Map<string, Call>;
  /** The one that has begun and not ended. */
  compaction: Compaction | undefined;
  /** The last that ended: the summary that follows is its. */
  compacted: Compaction | undefined;
  /** What was said for no committed Request: a new context begins with it, to the letter. */
  uncommitted: CompleteMessage[];
  /** What of it is about to come again. */
  repeated: CompleteMessage[];
  /** The Prompt that may go on with the next record. */
  prompt: OpenPrompt | undefined;
  /** Answers whose Request, or what it asked for, has not ended. */
  unforkable: Text[];
  unanswered: Set<string>;
  isRequestOpen: boolean;
}

export function foldMessages(messages: readonly ViewMessage[], options: FoldOptions): Folded {
  const folding: Folding = {
    options,
    entries: [],
    calls: new Map(),
    compaction: undefined,
    compacted: undefined,
    uncommitted: [],
    repeated: [],
    prompt: undefined,
    unforkable: [],
    unanswered: new Set(),
    isRequestOpen: false,
  };
  messages.forEach(({ key, message }, index) => {
    const ordinal = options.first + index;
    if (!isSaid(message)) folding.prompt = undefined;
    if (message.type === "session_meta") folding.repeated = folding.uncommitted;
    else if (isEventMessage(message)) foldEvent(folding, key, message.payload, ordinal);
    else if (isCompleteModelMessage(message)) foldContent(folding, key, message, ordinal);
  });
  return folding;
}

function foldContent(folding: Folding, key: string, message: CompleteMessage, ordinal: number): void {
  const { payload } = message;
  const stop = payload.stop_reason ?? "";
  // What was said to summarise the context is no part of the conversation; the summary itself is.
  if (folding.compaction !== undefined && payload.type !== "tool_call_output" && !isSummary(payload)) return;
  switch (payload.type) {
    case "text":
      if (payload.role === "user") {
        foldText(folding, key, message, payload, ordinal);
        return;
      }
      foldAnswer(folding, { kind: "text", key, text: payload.text, open: false, stop, forkAt: null });
      return;
    case "thinking":
      add(folding, { kind: "thinking", key, text: payload.thinking, open: false, stop });
      return;
    case "inline_thinking":
      add(folding, { kind: "thinking", key, text: "", open: false, stop });
      return;
    case "tool_call": {
      const { name, arguments: args, tool_call_id: id } = payload;
      Object.assign(callOf(folding, id, key), { name, args, isWritten: true, stop });
      if (stop === "") folding.unanswered.add(id);
      return;
    }
    case "tool_call_output":
      Object.assign(callOf(folding, payload.tool_call_id, key), outputFields(payload));
      folding.unanswered.delete(payload.tool_call_id);
      settleForks(folding, ordinal);
      return;
    case "image_url":
      foldSaid(
        folding,
        message,
        { kind: "image", key, url: payload.image_url, role: payload.role, forkAt: null },
        ordinal,
      );
      return;
    case "inline_data":
      if (payload.role === "user") foldSaid(folding, message, dataItem(key, payload), ordinal);
      else add(folding, dataItem(key, payload));
      return;
    default:
      passOver(payload);
  }
}

const isSummary = (payload: CompleteMessage["payload"]): boolean =>
  payload.type === "text" && payload.text.startsWith("[context_summary]");

function foldAnswer(folding: Folding, item: Text): void {
  folding.unforkable.push(item);
  add(folding, item);
}

function foldText(
  folding: Folding,
  key: string,
  message: CompleteMessage,
  payload: TextPayload,
  ordinal: number,
): void {
  const { text } = payload;
  if (isSummary(payload)) {
    if (folding.compacted !== undefined) folding.compacted.summary = summaryText(text);
    else add(folding, notice(key, "quiet", "The conversation so far was summarised for the model.", summaryText(text)));
    return;
  }
  // A child's prompt is in the call that started it.
  if (folding.options.isChild) return;
  const { timestamp: at } = message;
  foldSaid(folding, message, { kind: "user", key, text, at, steered: isSteering(message), forkAt: null }, ordinal);
}

function foldSaid(folding: Folding, message: CompleteMessage, item: Said, ordinal: number): void {
  if (isCopyOf(folding.repeated[0], message)) {
    folding.repeated = folding.repeated.slice(1);
    return;
  }
  add(folding, item);
  folding.uncommitted = [...folding.uncommitted, message];
  const { prompt } = folding;
  if (prompt === undefined || !isSamePrompt(prompt.last, message)) {
    item.forkAt = isSteering(message) ? null : ordinalBefore(folding.options, ordinal);
    folding.prompt = { last: message, holder: item };
    return;
  }
  prompt.last = message;
  if (item.kind !== "user" || prompt.holder.kind === "user") return;
  item.forkAt = prompt.holder.forkAt;
  prompt.holder.forkAt = null;
  prompt.holder = item;
}

/** Where a Prompt begins, or null where that is not known: on an older page it may have begun earlier. */
function ordinalBefore({ first, confirmed }: FoldOptions, ordinal: number): number | null {
  return ordinal > first && ordinal < confirmed ? ordinal - 1 : null;
}

function foldEvent(folding: Folding, key: string, payload: EventPayload, ordinal: number): void {
  switch (payload.type) {
    case "approval_decision": {
      const { tool_call_id: id, decision, decided_by: decidedBy = "", reason = "" } = payload;
      // Its call may be on an older page, with nothing to hang this on.
      if (folding.options.first > 0 && !folding.calls.has(id)) return;
      Object.assign(callOf(folding, id, key), { decision, decidedBy, reason });
      return;
    }
    case "request_begin":
      folding.repeated = [];
      folding.isRequestOpen = true;
      return;
    case "request_end":
      if (payload.status === "completed") folding.uncommitted = [];
      folding.isRequestOpen = false;
      for (const item of requestNotices(key, payload)) add(folding, item);
      settleForks(folding, ordinal);
      return;
    case "compaction_begin":
      folding.compaction = compactionItem(key, payload.reason, payload.context);
      add(folding, folding.compaction);
      return;
    case "compaction_end":
      endCompaction(folding, key, payload.reason, payload.status);
      return;
    case "abort":
      if (folding.compaction !== undefined) endCompaction(folding, key, folding.compaction.reason, "aborted");
      folding.isRequestOpen = false;
      folding.unforkable = [];
      add(folding, notice(key, "warn", abortText(payload.reason)));
      return;
    case "subagent":
      add(folding, { kind: "subagent", key, sessionId: payload.session_id });
      return;
    case "token_usage":
      return;
    default:
      passOver(payload);
  }
}

/** A fork may end where everything that was begun has ended. */
function settleForks(folding: Folding, ordinal: number): void {
  if (folding.isRequestOpen || folding.unanswered.size > 0) return;
  if (!folding.options.isChild && ordinal < folding.options.confirmed) {
    for (const item of folding.unforkable) item.forkAt = ordinal;
  }
  folding.unforkable = [];
}

const compactionItem = (key: string, reason: string, context: number): Compaction => ({
  kind: "compaction",
  key,
  status: "running",
  reason,
  context,
  summary: "",
});

function endCompaction(folding: Folding, key: string, reason: string, status: string): void {
  // Its beginning may be on an older page.
  const item = folding.compaction ?? compactionItem(key, reason, 0);
  if (folding.compaction === undefined) add(folding, item);
  item.status = status;
  folding.compaction = undefined;
  if (status === "completed") folding.compacted = item;
}

const add = (folding: Folding, entry: FoldedEntry): void => void folding.entries.push(entry);

/** The call of an id, made here where it is new. */
function callOf(folding: Folding, id: string, key: string): Call {
  const found = folding.calls.get(id);
  if (found !== undefined) return found;
  const call = newCall(id, key);
  folding.calls.set(id, call);
  add(folding, { kind: "call", call });
  return call;
}

function dataItem(key: string, payload: InlineDataPayload): Extract<Item, { kind: "image" | "file" }> {
  const { mime_type: type, data, role, file_name: name } = payload;
  if (type.startsWith("image/")) return { kind: "image", key, url: `data:${type};base64,${data}`, role, forkAt: null };
  return { kind: "file", key, name: name ?? type, role, forkAt: null };
}

/** A message of a newer server is not for this page; one of ours that is forgotten here fails to compile. */
function passOver(_payload: never): void {}
