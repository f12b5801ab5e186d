// A Task with a scripted model and scripted tools around the real engine. The commit point keeps two lists: what was
// shown and what was recorded, and every test holds the validator over both.

import { expect } from "vitest";
import { type Clock, systemClock } from "../../src/clock.js";
import type { CompactionSettings } from "../../src/engine/compaction.js";
import { Context } from "../../src/engine/context.js";
import type {
  Approver,
  Environment,
  LLMClient,
  LLMOutcome,
  LLMRequest,
  ToolExecution,
} from "../../src/engine/ports.js";
import { runTask, type TaskDeps, type TaskOutcome } from "../../src/engine/run.js";
import { Unfinished } from "../../src/engine/unfinished.js";
import { PartialAggregator } from "../../src/protocol/aggregate.js";
import { asSteering, emptyTokenCounts, userText } from "../../src/protocol/builders.js";
import { isPartial, isPayload } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import type { TokenCounts } from "../../src/protocol/payloads.js";
import { SegmentWriter, ToolOutputWriter } from "../../src/protocol/segment.js";
import { validateStream } from "../../src/protocol/validate.js";
import type { Journal } from "../../src/session/journal.js";
import { metaOf } from "./messages.js";

const now = () => new Date().toISOString();

export type Step =
  | { say: string }
  | { think: string }
  /** `cut`: the output limit ends it in mid-arguments. */
  | { call: string; id: string; args?: string; cut?: true }
  /** Waits, also beyond an abort unless told to heed it. */
  | { wait: Promise<unknown>; ignoresAbort?: boolean }
  /** Leaves a text segment open. */
  | { begin: string };

/** One answer: its segments, then its outcome. */
export interface Script {
  steps: Step[];
  outcome?: Partial<LLMOutcome>;
}

export interface ScriptedModel extends LLMClient {
  /** What the model was sent, a Request each. */
  readonly requests: LLMRequest[];
}

/** A model that gives the scripts in order, one for each Request. */
export function scriptedModel(scripts: Script[]): ScriptedModel {
  const requests: LLMRequest[] = [];
  return {
    requests,
    async *stream(request) {
      requests.push(request);
      const script = scripts[requests.length - 1];
      if (script === undefined) throw new Error("the script is over");
      const writer = new SegmentWriter(now);
      for (const step of script.steps) {
        if ("wait" in step) {
          const aborted = new Promise<void>((resolve) => {
            request.signal.addEventListener("abort", () => resolve(), { once: true });
          });
          await (step.ignoresAbort === true ? step.wait : Promise.race([step.wait, aborted]));
          if (request.signal.aborted && step.ignoresAbort !== true) {
            return { status: "aborted", usage: emptyTokenCounts() };
          }
        } else writeStep(writer, step);
        const due = writer.take();
        if (due.length > 0) yield due;
      }
      const outcome: LLMOutcome = { status: "completed", usage: counts(10, 5), ...script.outcome };
      writer.endAll(outcome.status === "completed" ? undefined : outcome.status);
      const due = writer.take();
      if (due.length > 0) yield due;
      return outcome;
    },
  };
}

function writeStep(writer: SegmentWriter, step: Exclude<Step, { wait: Promise<unknown> }>): void {
  if ("begin" in step) {
    writer.openText().append(step.begin);
    return;
  }
  writer.endAll();
  if ("say" in step) {
    const text = writer.openText();
    for (const word of step.say.split(/(?<= )/)) text.append(word);
    text.end();
  } else if ("think" in step) {
    const thinking = writer.openThinking();
    thinking.append(step.think);
    thinking.end();
  } else {
    const call = writer.openToolCall();
    call.identify(step.call, step.id);
    call.append(step.args ?? "{}");
    call.end(step.cut === true ? "malformed" : undefined);
  }
}

export const counts = (input: number, output: number): TokenCounts => ({
  cache_read: 0,
  cache_write: input,
  output,
  total: input + output,
});

export type ScriptedTool = (args: string, execution: ToolExecution) => AsyncGenerator<string, void, void>;

/** Tools by name. One that yields nothing more after the abort is closed as an interrupt closes it. */
export function scriptedTools(tools: Record<string, ScriptedTool>): Environment & { started: string[] } {
  const started: string[] = [];
  return {
    started,
    definitions: () => Object.keys(tools).map((name) => ({ name, description: name })),
    check: (call) => {
      if (tools[call.payload.name] === undefined) return `Unknown tool ${call.payload.name}.`;
      return /^\s*(\{.*)?$/s.test(call.payload.arguments) ? undefined : "The arguments are not an object.";
    },
    mayWrite: () => true,
    async *execute(execution) {
      const { call, signal } = execution;
      const writer = new ToolOutputWriter(now, call.payload.tool_call_id);
      const tool = tools[call.payload.name];
      if (tool === undefined || !/^\s*(\{.*)?$/s.test(call.payload.arguments)) {
        yield [...writer.append("This call cannot run."), ...writer.end({ stop: "failed" })];
        return;
      }
      started.push(call.payload.tool_call_id);
      for await (const text of tool(call.payload.arguments, execution)) yield writer.append(text);
      if (signal.aborted) {
        yield [...writer.append("[interrupted: tool aborted by user]"), ...writer.end({ stop: "aborted" })];
      } else yield [...writer.append(writer.content === "" ? "[no output]" : ""), ...writer.end()];
    },
  };
}

const NO_COMPACTION: CompactionSettings = {
  maxContextLength: -1,
  maxSessionTurns: -1,
  mode: "summarize",
  prompt: "Summarize.",
};

export interface Harness {
  stream: OmniMessage[];
  trace: OmniMessage[];
  context: Context;
  unfinished: Unfinished;
  abort(): void;
  /** Shows what a child has shown. */
  journal: Pick<Journal, "commit" | "fragments">;
  /** Closes what a refused record left unfinished, as a restart does. */
  close(): void;
  /** Says something into the running Task. */
  steer(text: string): void;
  /** Runs a Task for a Prompt, and checks what came of it. */
  run(prompt: string): Promise<TaskOutcome>;
  /** Resolves when a message that fits has been shown. */
  shown(fits: (message: OmniMessage) => boolean): Promise<OmniMessage>;
}

export function harness(options: {
  model: LLMClient;
  environment?: Environment;
  approver?: Approver;
  maxTurns?: number;
  retry?: TaskDeps["retry"];
  /** Every wait for another try, as it was asked for. */
  waits?: { attempt: number; at: number; status: string }[];
  clock?: Clock;
  /** What an append waits for. */
  written?: () => Promise<void>;
  /** Rejects the append of a record, as a full disk does. */
  refuses?: (message: OmniMessage) => boolean;
  onShown?: (message: OmniMessage) => void;
  /** Left out: no context is ever due. */
  compaction?: Partial<CompactionSettings>;
}): Harness {
  const clock = options.clock ?? systemClock();
  const stream: OmniMessage[] = [];
  const trace: OmniMessage[] = [];
  const context = new Context();
  const unfinished = new Unfinished();
  const fragments = new PartialAggregator();
  const callIds = new Set<string>();
  const steering: string[] = [];
  let usage = emptyTokenCounts();
  let stop = new AbortController();
  let waiting: { fits: (message: OmniMessage) => boolean; resolve: (message: OmniMessage) => void }[] = [];

  const keep = (record: OmniMessage) => {
    // A new context goes in front of the next record, in the same write.
    const opening = context.nextContext();
    if (opening !== undefined) for (const first of [metaOf(), ...opening]) fold(first);
    fold(record);
  };
  const fold = (record: OmniMessage) => {
    trace.push(record);
    context.push(record);
    unfinished.push(record);
    if (isPayload(record, "token_usage")) usage = record.payload.session;
    if (isPayload(record, "tool_call")) callIds.add(record.payload.tool_call_id);
  };
  const show = (batch: readonly OmniMessage[]) => {
    for (const message of batch) {
      if (isPartial(message)) fragments.push(message);
      else if (message.origin === undefined) keep(message);
      stream.push(message);
      options.onShown?.(message);
      for (const entry of waiting) if (entry.fits(message)) entry.resolve(message);
      waiting = waiting.filter((entry) => !entry.fits(message));
    }
  };
  const refuse = (batch: readonly OmniMessage[]) => {
    if (batch.some((message) => options.refuses?.(message) === true)) throw new Error("ENOSPC");
  };
  const commit: TaskDeps["commit"] = (batch) => {
    if (batch.every((message) => isPartial(message) || message.origin !== undefined)) {
      show(batch);
      return undefined;
    }
    return (options.written?.() ?? Promise.resolve()).then(() => {
      refuse(batch);
      show(batch);
    });
  };
  return {
    stream,
    trace,
    context,
    unfinished,
    abort: () => stop.abort(),
    journal: { commit, fragments },
    close: () => {
      show(fragments.closers(now(), "aborted", "all"));
      show(unfinished.closing(now(), usage, { status: "aborted", abortReason: "server_restarted" }));
    },
    steer: (text) => steering.push(text),
    shown: (fits) => {
      const found = stream.find(fits);
      return found === undefined ? new Promise((resolve) => waiting.push({ fits, resolve })) : Promise.resolve(found);
    },
    run: async (prompt) => {
      stop = new AbortController();
      keep(userText(now(), prompt));
      const environment = options.environment ?? scriptedTools({});
      const outcome = await runTask({
        sessionId: "session-test",
        llm: options.model,
        environment,
        approver: options.approver ?? (() => ({ decision: "allow", decidedBy: "policy" })),
        clock,
        fragments,
        sessionUsage: () => usage,
        retry: options.retry ?? { baseMs: 0, maxMs: 0, limit: 0 },
        waitToRetry: async (wait, signal) => {
          options.waits?.push(wait);
          await clock.sleep(Math.max(0, wait.at - clock.now()), signal);
        },
        steering: {
          take: async () => {
            const texts = steering.splice(0);
            for (const text of texts) keep(asSteering(userText(now(), text), `steer-${text}`));
            return texts.length > 0;
          },
          end: () => steering.length === 0,
        },
        compaction: {
          settings: { ...NO_COMPACTION, ...options.compaction },
          contextWindow: 0,
          record: async (records) => {
            await options.written?.();
            refuse(records);
            for (const record of records) keep(record);
          },
          onCompacting: () => {},
          onFailed: () => {},
        },
        onProgress: () => {},
        signal: stop.signal,
        systemPrompt: "",
        tools: () => environment.definitions(),
        thinkingLevel: "default",
        maxTurns: options.maxTurns ?? -1,
        context,
        isCallIdTaken: (id) => callIds.has(id),
        commit,
        abortReason: () => "user",
        onFault: (error) => ({ status: "failed", error: { kind: "storage", message: String(error) } }),
      });
      if (options.refuses === undefined) {
        expect(validateStream(stream, { mode: "stream" })).toEqual([]);
        expect(fragments.isEmpty).toBe(true);
        expect(unfinished.isOpen).toBe(false);
      }
      return outcome;
    },
  };
}

/** The kinds of a stream, short: "request_begin", "tool_call a", "partial_text start". */
export function kinds(stream: readonly OmniMessage[], options: { partials?: boolean } = {}): string[] {
  return stream
    .filter((message) => options.partials === true || !isPartial(message))
    .map((message) => {
      const payload = message.payload as Record<string, unknown>;
      const extra = payload.tool_call_id ?? payload.event_type ?? payload.status ?? "";
      return `${payload.type} ${extra}`.trim();
    });
}

/** A promise and how to settle it. */
export function gate<T = void>(): { promise: Promise<T>; open: (value: T) => void } {
  let open: (value: T) => void = () => {};
  const promise = new Promise<T>((resolve) => {
    open = resolve;
  });
  return { promise, open };
}
