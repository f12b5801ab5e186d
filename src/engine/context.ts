// The model's context as a fold over the Trace's records. The live Session and a restart run the same code over the
// same records, so a restart gives the same context. Only committed Requests enter it: a Request whose `request_end`
// is not `completed` leaves its input waiting, and a block that tells what it had come to.

import { toolCallOutput, userText } from "../protocol/builders.js";
import { isCompleteModelMessage, isPayload, isSessionMeta } from "../protocol/guards.js";
import type { CompleteMessage, OmniMessage } from "../protocol/message.js";
import type { RequestEndPayload, ToolCallOutputPayload, ToolCallPayload } from "../protocol/payloads.js";
import { type BlockTag, carryOverBlock } from "./carry-over.js";
import { INPUT_WITHHELD, NO_RECORD, OUTPUT_WITHHELD } from "./engine-notes.js";

type Output = OmniMessage<ToolCallOutputPayload>;

/** The calls of one answer and what came back, in arrival order. */
interface Batch {
  calls: OmniMessage<ToolCallPayload>[];
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

/** Folds records into what the next Request carries. Memory: the current context. */
export class Context {
  #committed: CompleteMessage[] = [];
  #input: Pending[] = [];
  #request: OpenRequest | undefined;
  /** Where outputs go: the open Request's batch, or the last one's, whose tools may still run. */
  #batch: Batch | undefined;
  #compacting = false;

  /** Takes the next record of the Trace, in order. */
  push(record: OmniMessage): void {
    if (record.origin !== undefined && record.origin.length > 0) return;
    if (isSessionMeta(record)) this.#reset();
    else if (isPayload(record, "compaction_begin")) this.#compacting = true;
    else if (isPayload(record, "compaction_end")) this.#compacting = false;
    else if (this.#compacting) return;
    else if (isPayload(record, "request_begin")) this.#begin(record.timestamp);
    else if (isPayload(record, "request_end")) this.#end(record.payload, record.timestamp);
    else if (isPayload(record, "abort")) this.#close("turn_aborted", record.timestamp);
    else if (isCompleteModelMessage(record)) this.#message(record);
  }

  /** The messages of the next Request: the committed context, then the input that waits. */
  assemble(): CompleteMessage[] {
    return [...this.#committed, ...this.#input.flatMap(resolve)];
  }

  /** True while some input waits to be submitted. */
  get hasInput(): boolean {
    return this.#input.length > 0;
  }

  #reset(): void {
    this.#committed = [];
    this.#input = [];
    this.#request = undefined;
    this.#batch = undefined;
    this.#compacting = false;
  }

  #message(record: CompleteMessage): void {
    if (isPayload(record, "tool_call_output")) {
      const id = record.payload.tool_call_id;
      const batch = this.#batch;
      if (batch?.calls.some((call) => call.payload.tool_call_id === id) === true) batch.outputs.set(id, record);
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
    if (isPayload(record, "tool_call")) this.#request.batch.calls.push(record);
  }

  #begin(at: string): void {
    this.#close("turn_retried", at);
    const batch: Batch = { calls: [], outputs: new Map() };
    this.#request = { produced: [], batch, later: [] };
    this.#batch = batch;
  }

  #end(end: RequestEndPayload, at: string): void {
    if (end.status !== "completed") {
      if (isRefusal(end)) this.#input = this.#input.map((item) => ({ ...item, refusals: item.refusals + 1 }));
      this.#close(end.status === "aborted" ? "turn_aborted" : "turn_retried", at);
      return;
    }
    const request = this.#request;
    if (request === undefined) return;
    this.#request = undefined;
    this.#committed.push(...this.#input.flatMap(resolve), ...request.produced);
    this.#input = request.later;
    if (request.batch.calls.length > 0) this.#input.unshift({ kind: "outputs", batch: request.batch, refusals: 0 });
  }

  /** Ends a Request that did not commit: its input goes again, then the block. */
  #close(tag: BlockTag, at: string): void {
    const request = this.#request;
    if (request === undefined) return;
    this.#request = undefined;
    const { produced, batch, later } = request;
    if (produced.length > 0) this.#input.push({ kind: "block", tag, at, produced, batch, refusals: 0 });
    this.#input.push(...later);
  }
}

/** The provider said that the input itself is at fault, so the same input would be refused for ever. */
function isRefusal(end: RequestEndPayload): boolean {
  const { error } = end;
  if (error?.kind === "content_filter") return true;
  if (error?.kind !== "invalid_request") return false;
  return error.http_status === undefined || [200, 400, 413, 415, 422].includes(error.http_status);
}

/** One item as the model reads it. Refused once, it loses images and files; refused twice, its text too. */
function resolve(item: Pending): CompleteMessage[] {
  switch (item.kind) {
    case "outputs":
      return item.batch.calls.flatMap((call) => outputOf(item.batch, call, item.refusals));
    case "block": {
      const text = carryOverBlock(item.tag, item.produced, item.batch.outputs);
      return text === undefined || item.refusals >= 2 ? [] : [userText(item.at, text)];
    }
    case "message": {
      const { message, refusals } = item;
      if (refusals >= 1 && !isPayload(message, "text")) return [];
      return refusals >= 2 ? [userText(message.timestamp, INPUT_WITHHELD)] : [message];
    }
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
