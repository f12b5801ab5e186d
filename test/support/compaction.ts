// A context made of records, and compactions of it by the real engine with a scripted model. Two lists are kept, what
// was shown and what was recorded, as a journal keeps them: the next context goes in front of the next record.

import { expect } from "vitest";
import { type Clock, systemClock } from "../../src/clock.js";
import { type CompactionDeps, type CompactionResult, compact } from "../../src/engine/compaction.js";
import { Context } from "../../src/engine/context.js";
import type { LLMClient } from "../../src/engine/ports.js";
import { Unfinished } from "../../src/engine/unfinished.js";
import * as make from "../../src/protocol/builders.js";
import { isPayload } from "../../src/protocol/guards.js";
import type { CompleteMessage, OmniMessage } from "../../src/protocol/message.js";
import type { CompactionReason, RequestError, TokenCounts } from "../../src/protocol/payloads.js";
import { validateStream } from "../../src/protocol/validate.js";
import { counts } from "./engine.js";
import { AT, metaOf } from "./messages.js";

export const PROMPT = "Summarize.";

export interface FoldedTrace {
  readonly trace: OmniMessage[];
  readonly context: Context;
  readonly unfinished: Unfinished;
  usage: TokenCounts;
  /** Records in one write, after the next context where one is due. */
  append(records: readonly OmniMessage[]): void;
}

/** Folds records as they are, then takes further ones. */
export function folded(records: readonly OmniMessage[]): FoldedTrace {
  const context = new Context();
  const unfinished = new Unfinished();
  const trace: OmniMessage[] = [];
  const keep = (record: OmniMessage) => {
    trace.push(record);
    context.push(record);
    unfinished.push(record);
    if (isPayload(record, "token_usage")) it.usage = record.payload.session;
  };
  const it: FoldedTrace = {
    trace,
    context,
    unfinished,
    usage: make.emptyTokenCounts(),
    append: (more) => {
      const opening = context.nextContext();
      if (opening !== undefined) for (const record of [metaOf(), ...opening]) keep(record);
      for (const record of more) keep(record);
    },
  };
  for (const record of records) keep(record);
  return it;
}

export interface Compactor extends FoldedTrace {
  /** What was shown since the compactor was made. */
  readonly stream: OmniMessage[];
  /** What `onCompacting` was told. */
  readonly states: boolean[];
  readonly failures: (RequestError | undefined)[];
  /** Every wait for another try. */
  readonly waits: { attempt: number; waitMs: number; status: string }[];
  readonly deps: CompactionDeps;
  run(reason?: CompactionReason): Promise<CompactionResult>;
  abort(): void;
}

export interface CompactorOptions {
  model: LLMClient;
  settings?: Partial<CompactionDeps["settings"]>;
  contextWindow?: number;
  retry?: CompactionDeps["retry"];
  clock?: Clock;
  /** Rejects the write of a record, as a full disk does. */
  refuses?: (record: OmniMessage) => boolean;
}

export function compactor(records: readonly OmniMessage[], options: CompactorOptions): Compactor {
  const clock = options.clock ?? systemClock();
  const base = folded(records);
  const stream: OmniMessage[] = [];
  const waits: Compactor["waits"] = [];
  const states: boolean[] = [];
  const failures: Compactor["failures"] = [];
  const stop = new AbortController();
  const write = async (batch: readonly OmniMessage[]) => {
    await Promise.resolve();
    if (batch.some((record) => options.refuses?.(record) === true)) throw new Error("ENOSPC");
    base.append(batch);
  };
  const deps: CompactionDeps = {
    sessionId: "session-test",
    llm: options.model,
    clock,
    context: base.context,
    systemPrompt: "Be brief.",
    tools: () => [{ name: "exec_command", description: "Runs a command." }],
    thinkingLevel: "default",
    isCallIdTaken: () => false,
    sessionUsage: () => base.usage,
    settings: { maxContextLength: 1_000, maxSessionTurns: -1, mode: "summarize", prompt: PROMPT, ...options.settings },
    contextWindow: options.contextWindow ?? 128_000,
    retry: options.retry ?? { baseMs: 0, maxMs: 0, limit: 0 },
    waitToRetry: async ({ attempt, at, status }, signal) => {
      const waitMs = at - clock.now();
      waits.push({ attempt, waitMs, status });
      await clock.sleep(Math.max(0, waitMs), signal);
    },
    emit: async (batch) => {
      await write(batch);
      stream.push(...batch);
    },
    record: write,
    onCompacting: (is) => states.push(is),
    onFailed: (error) => failures.push(error),
    onFault: (error) => ({ status: "failed", error: { kind: "unknown", message: String(error) } }),
    signal: stop.signal,
    abortReason: () => "user",
  };
  return Object.assign(base, {
    stream,
    states,
    failures,
    waits,
    deps,
    run: (reason: CompactionReason = "manual") => compact(deps, reason),
    abort: () => stop.abort(),
  });
}

/** Records of Tasks, with usage that adds up. */
export class Story {
  readonly records: OmniMessage[] = [metaOf()];
  #usage = make.emptyTokenCounts();
  #ids = 0;

  prompt(text: string, ...more: CompleteMessage[]): this {
    this.records.push(make.userText(AT, text), ...more);
    return this;
  }

  /** A committed Request that says something, or makes calls whose outputs all come. `total`: its count of tokens. */
  turn(text: string, options: { calls?: number; total?: number } = {}): this {
    const calls = Array.from({ length: options.calls ?? 0 }, () => {
      this.#ids += 1;
      return make.toolCall(AT, { name: "exec_command", arguments: "{}", tool_call_id: `c${this.#ids}` });
    });
    this.records.push(make.requestBegin(AT));
    if (text !== "") this.records.push(make.assistantText(AT, text));
    this.records.push(...calls);
    for (const { payload } of calls) {
      const { tool_call_id } = payload;
      this.records.push(make.approvalDecision(AT, { decision: "allow", tool_call_id, decided_by: "policy" }));
    }
    this.#tail({ status: "completed" }, options.total ?? 100);
    // In completion order, which is not call order.
    for (const { payload } of calls.toReversed()) {
      const { tool_call_id } = payload;
      this.records.push(make.toolCallOutput(AT, { output: `output of ${tool_call_id}`, tool_call_id }));
    }
    return this;
  }

  /** A Request that came to nothing. */
  failed(error: RequestError): this {
    this.records.push(make.requestBegin(AT));
    this.#tail({ status: "failed", error }, 0);
    return this;
  }

  #tail(end: Parameters<typeof make.requestEnd>[1], total: number): void {
    const usage = total === 0 ? make.emptyTokenCounts() : counts(total - 1, 1);
    this.#usage = make.addTokenCounts(this.#usage, usage);
    this.records.push(make.tokenUsage(AT, this.#usage, usage), make.requestEnd(AT, end));
  }
}

export const textsOf = (messages: readonly OmniMessage[]): string[] =>
  messages.flatMap((message) => (isPayload(message, "text") ? [message.payload.text] : []));

/** Holds the Trace, and what was shown of the compaction, to every guarantee. */
export function expectLawfulRecords(it: Pick<Compactor, "trace"> & { stream?: readonly OmniMessage[] }): void {
  expect(validateStream(it.trace, { mode: "trace" }), "the Trace").toEqual([]);
  if (it.stream === undefined) return;
  expect(validateStream(it.stream, { mode: "stream", joined: true }), "the stream").toEqual([]);
}
