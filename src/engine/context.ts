// The model's context as a fold over the Trace's records. The live Session and a restart run the same code over the
// same records, so a restart gives the same context. Only committed Requests enter it: a Request whose `request_end`
// is not `completed` leaves its input waiting, and a block that tells what it had come to. What a compaction says between
// its begin and its end is not the model's context; it makes the next one.

import { append } from "../append.js";
import { toolCallOutput, userText } from "../protocol/builders.js";
import { isCompleteModelMessage, isPayload, isSessionMeta } from "../protocol/guards.js";
import type { CompleteMessage, OmniMessage } from "../protocol/message.js";
import type { RequestEndPayload, ToolCallOutputPayload, ToolCallPayload } from "../protocol/payloads.js";
import { unreachable } from "../result.js";
import { type BlockTag, carryOverBlock } from "./carry-over.js";
import { CompactionFold } from "./compaction-fold.js";
import { doubted } from "./doubted.js";
import { INPUT_WITHHELD, NO_RECORD, OUTPUT_WITHHELD } from "./engine-notes.js";
import { Opening } from "./opening.js";
import { TaskPrompt } from "./task-prompt.js";

type Output = OmniMessage<ToolCallOutputPayload>;

/** The calls of one answer and what came back, in arrival order. */
interface Batch {
  calls: OmniMessage<ToolCallPayload>[];
  ids: Set<string>;
  outputs: Map<string, Output>;
}

/** Input that no committed Request has carried yet. `refusals` counts how often the provider refused it. */
type Pending = { refusals: number } & (
  | { kind: "message"; message: CompleteMessage }
  | { kind: "outputs"; batch: Batch }
  | { kind: "block"; tag: BlockTag; at: string; produced: CompleteMessage[]; batch: Batch }
);

interface OpenRequest {
  produced: CompleteMessage[];
  batch: Batch;
  /** User messages recorded while the Request ran: they belong to the next one. */
  later: Pending[];
}

/** How large the current context is. */
export interface ContextSize {
  /** The provider's own count for the last committed Request, its answer included; 0 where it gave none. */
  tokens: number;
  /** Committed Requests. */
  turns: number;
  /** As `tokens`, for the context's first committed Request. */
  leastTokens: number;
  /** True for a context that a compaction began. */
  isCompacted: boolean;
}

const EMPTY: ContextSize = { tokens: 0, turns: 0, leastTokens: 0, isCompacted: false };

/** Folds records into what the next Request carries. Memory: the current context. */
export class Context {
  #committed: CompleteMessage[] = [];
  #input: Pending[] = [];
  #request: OpenRequest | undefined;
  /** Where outputs go: the open Request's batch, or the last one's, whose tools may still run. */
  #batch: Batch | undefined;
  readonly #compaction = new CompactionFold();
  readonly #opening = new Opening();
  readonly #prompt = new TaskPrompt();
  #size: ContextSize = EMPTY;
  /** How often in a row the provider refused what it was sent. */
  #refusals = 0;
  /** Total of the newest `token_usage` of a Request. */
  #lastTotal = 0;

  /** Takes the next record of the Trace, in order. */
  push(record: OmniMessage): void {
    if (record.origin !== undefined && record.origin.length > 0) return;
    const opens = this.#opening.push(record);
    if (this.#compaction.push(record)) return;
    if (opens === undefined) this.#prompt.push(record);
    if (isSessionMeta(record)) this.#reset(false);
    else if (opens === "summary") {
      this.#reset(true);
      this.#committed.push(record as CompleteMessage);
    } else if (isPayload(record, "request_begin")) this.#begin(record.timestamp);
    else if (isPayload(record, "token_usage")) this.#lastTotal = record.payload.request.total;
    else if (isPayload(record, "request_end")) this.#end(record.payload, record.timestamp);
    else if (isPayload(record, "abort")) this.#close("turn_aborted", record.timestamp);
    else if (isCompleteModelMessage(record)) this.#message(record);
  }

  /** The messages of the next Request: the committed context, then the input that waits. */
  assemble(): CompleteMessage[] {
    return this.nextContext() ?? [...this.#committed, ...resolveAll(this.#input)];
  }

  get size(): ContextSize {
    return this.#opening.isOwed ? { ...EMPTY, isCompacted: true } : this.#size;
  }

  /**
   * What a summary has to cover: the committed context, outputs and blocks, without the user messages that the next
   * context gets word for word. The first `committed` messages are those that Requests have carried.
   */
  toSummarize(): { messages: CompleteMessage[]; committed: number } {
    const waiting = this.#input.filter(({ kind }) => kind !== "message");
    return { messages: [...this.#committed, ...resolveAll(waiting)], committed: this.#committed.length };
  }

  /**
   * What a new context begins with, behind its `session_meta`: the summary, and copies of what no committed Request
   * carried. It goes in front of the next record. Undefined unless a compaction has completed and nothing came since.
   */
  nextContext(): CompleteMessage[] | undefined {
    if (!this.#opening.isOwed) return undefined;
    const waiting = this.#input.flatMap((item) => (item.kind === "message" ? [item.message] : []));
    const goesOn = this.#input.length > 0;
    return [...this.#compaction.opening(this.#prompt.messages, waiting, goesOn), ...waiting];
  }

  #reset(isCompacted: boolean): void {
    this.#committed = [];
    this.#input = [];
    this.#request = undefined;
    this.#batch = undefined;
    this.#refusals = 0;
    this.#size = { ...EMPTY, isCompacted };
  }

  #message(record: CompleteMessage): void {
    if (isPayload(record, "tool_call_output")) {
      const id = record.payload.tool_call_id;
      const batch = this.#batch;
      if (batch?.ids.has(id) === true) batch.outputs.set(id, record);
      return;
    }
    if (record.payload.role === "user") {
      const pending: Pending = { kind: "message", message: record, refusals: 0 };
      (this.#request?.later ?? this.#input).push(pending);
      return;
    }
    // An assistant message outside a Request is the engine's own notice: not the model's words.
    if (this.#request === undefined) return;
    this.#request.produced.push(record);
    if (!isPayload(record, "tool_call")) return;
    this.#request.batch.calls.push(record);
    this.#request.batch.ids.add(record.payload.tool_call_id);
  }

  #begin(at: string): void {
    this.#close("turn_retried", at);
    const batch: Batch = { calls: [], ids: new Set(), outputs: new Map() };
    this.#request = { produced: [], batch, later: [] };
    this.#batch = batch;
  }

  #end(end: RequestEndPayload, at: string): void {
    if (end.status !== "completed") {
      if (isRefusal(end)) this.#refused(end);
      this.#close(end.status === "aborted" ? "turn_aborted" : "turn_retried", at);
      return;
    }
    const request = this.#request;
    if (request === undefined) return;
    this.#request = undefined;
    this.#refusals = 0;
    const { turns, leastTokens, isCompacted } = this.#size;
    this.#size = {
      tokens: this.#lastTotal,
      turns: turns + 1,
      leastTokens: turns === 0 ? this.#lastTotal : leastTokens,
      isCompacted,
    };
    append(this.#committed, resolveAll(this.#input));
    append(this.#committed, request.produced);
    this.#input = request.later;
    if (request.batch.calls.length > 0) this.#input.unshift({ kind: "outputs", batch: request.batch, refusals: 0 });
  }

  #refused({ error }: RequestEndPayload): void {
    this.#input = this.#input.map((item) => ({ ...item, refusals: item.refusals + 1 }));
    // A filter speaks of what was said, and mostly of what was said last.
    this.#refusals += error?.kind === "content_filter" ? 0.5 : 1;
    this.#committed = doubted(this.#committed, this.#refusals);
  }

  /** Ends a Request that did not commit: its input goes again, then the block. */
  #close(tag: BlockTag, at: string): void {
    const request = this.#request;
    if (request === undefined) return;
    this.#request = undefined;
    const { produced, batch, later } = request;
    this.#input.push({ kind: "block", tag, at, produced, batch, refusals: 0 });
    append(this.#input, later);
  }
}

/** The provider said that the input itself is at fault, so the same input would be refused for ever. */
function isRefusal(end: RequestEndPayload): boolean {
  const { error } = end;
  if (error?.kind === "content_filter") return true;
  // What no provider has seen was refused by none.
  if (error?.kind !== "invalid_request" || error.unsent === true) return false;
  return error.http_status === undefined || [200, 400, 413, 415, 422].includes(error.http_status);
}

/** Input as the model reads it. What was refused twice goes, however much it was, and one text says so. */
function resolveAll(items: readonly Pending[]): CompleteMessage[] {
  let isTold = false;
  return items.flatMap((item) => {
    const messages = resolve(item);
    const [first] = messages;
    if (item.kind === "outputs" || item.refusals < 2 || first === undefined) return messages;
    const notice = isTold ? [] : [userText(first.timestamp, INPUT_WITHHELD)];
    isTold = true;
    return notice;
  });
}

/** One item. Refused once, it loses images and files; calls keep their outputs, without their text when refused twice. */
function resolve(item: Pending): CompleteMessage[] {
  switch (item.kind) {
    case "outputs":
      return item.batch.calls.flatMap((call) => outputOf(item.batch, call, item.refusals));
    case "block": {
      const text = carryOverBlock(item.tag, item.produced, item.batch.outputs);
      return text === undefined ? [] : [userText(item.at, text)];
    }
    case "message": {
      const { message, refusals } = item;
      return refusals === 1 && !isPayload(message, "text") ? [] : [message];
    }
    default:
      return unreachable(item);
  }
}

function outputOf(batch: Batch, call: OmniMessage<ToolCallPayload>, refusals: number): CompleteMessage[] {
  const { tool_call_id } = call.payload;
  const output = batch.outputs.get(tool_call_id);
  if (output === undefined) {
    return [toolCallOutput(call.timestamp, { output: NO_RECORD, tool_call_id, stop_reason: "aborted" })];
  }
  if (refusals === 0) return [output];
  const { images: _images, ...rest } = output.payload;
  return [{ ...output, payload: refusals >= 2 ? { ...rest, output: OUTPUT_WITHHELD } : rest } as Output];
}
