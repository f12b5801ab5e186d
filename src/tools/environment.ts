// The tools of a Session, as the engine sees them. The environment makes every message of an output and drives the
// tool between them, so whatever a tool does, one call gives one well-formed, capped, never empty output.

import type { Clock } from "../clock.js";
import { INTERRUPTED } from "../engine/engine-notes.js";
import type { Environment, ToolExecution } from "../engine/ports.js";
import { MAX_ARGUMENT_DEPTH, nestsDeeper } from "../protocol/json-depth.js";
import type { OmniMessage } from "../protocol/message.js";
import type { StopReason, ToolCallPayload } from "../protocol/payloads.js";
import { ToolOutputWriter } from "../protocol/segment.js";
import { ok, type Result, refuse, unreachable } from "../result.js";
import { MCP_PREFIX, serverKeyIn } from "./mcp-names.js";
import { Progress } from "./progress.js";
import { type Tool, ToolFailure, type ToolOutput, type ToolSource } from "./tool.js";
import { ToolRun } from "./tool-run.js";
import { OutputCap } from "./truncate.js";

const DEFAULT_MAX_OUTPUT_CHARS = 16_000;
const PROGRESS_TAIL_CHARS = 400;
const NO_OUTPUT = "[no output]";

export interface EnvironmentOptions {
  tools: readonly Tool[];
  /** Further tools, whose names are none of `tools`. They are looked up at each call. */
  source?: ToolSource;
  clock: Clock;
  /** Called with each call that was run to an end. Must not throw. */
  onCall?(call: CallStat): void;
  /** Longest output of one call, in characters. Left out: 16,000. */
  maxOutputChars?: number;
}

/** One call that is over. */
export interface CallStat {
  /** A built-in tool's name, `mcp__<server>` for every tool of an MCP server, `other` for a name that is none. */
  readonly tool: string;
  /** The `stop_reason` of its output; `completed` where it has none. */
  readonly outcome: StopReason;
}

/** Makes the Environment of one Session from its tools. Two tools of one name are a bug and throw. */
export function createEnvironment(options: EnvironmentOptions): Environment {
  const { tools, source, clock, onCall, maxOutputChars = DEFAULT_MAX_OUTPUT_CHARS } = options;
  const byName = new Map(tools.map((tool) => [tool.definition.name, tool]));
  if (byName.size !== tools.length) throw new Error("two tools have one name");
  const definitions = tools.map((tool) => tool.definition);
  const now: ToolSource = {
    tools: () => (source === undefined ? tools : [...tools, ...source.tools()]),
    find: (name) => byName.get(name) ?? source?.find(name),
  };

  return {
    definitions: () => (source === undefined ? definitions : now.tools().map((tool) => tool.definition)),
    check: (call) => {
      const prepared = prepare(now, call.payload);
      return prepared.ok ? undefined : prepared.message;
    },
    mayWrite: (toolName) => now.find(toolName)?.mayWrite ?? true,
    execute: (execution) => {
      const { name } = execution.call.payload;
      const onEnd = (outcome: StopReason) =>
        onCall?.({ tool: byName.has(name) ? name : familyOf(name, source), outcome });
      return execute(execution, now, { clock, maxOutputChars, onEnd });
    },
  };
}

/** What a model may say as a name is without end: only those of configured servers are told apart. */
function familyOf(name: string, source: ToolSource | undefined): string {
  const server = source?.find(name) === undefined ? undefined : serverKeyIn(name);
  return server === undefined ? "other" : `${MCP_PREFIX}${server}`;
}

interface OutputOptions {
  clock: Clock;
  maxOutputChars: number;
  onEnd(outcome: StopReason): void;
}

type Prepared = Result<{ tool: Tool; args: unknown }, "unknown_tool" | "bad_arguments">;

function prepare(source: ToolSource, call: ToolCallPayload): Prepared {
  const tool = source.find(call.name);
  if (tool === undefined) {
    const names = source.tools().map(({ definition }) => definition.name);
    const known = names.length === 0 ? "There are no tools" : `The tools are: ${names.join(", ")}`;
    return refuse("unknown_tool", `There is no tool named ${JSON.stringify(call.name)}. ${known}.`);
  }
  if (nestsDeeper(call.arguments, MAX_ARGUMENT_DEPTH)) {
    const problem = `are nested too deeply: more than ${MAX_ARGUMENT_DEPTH} levels`;
    return refuse("bad_arguments", `The arguments of ${call.name} ${problem}. Send one JSON object.`);
  }
  const parsed = tool.parse(call.arguments);
  return parsed.ok ? ok({ tool, args: parsed.value }) : parsed;
}

async function* execute(
  execution: ToolExecution,
  source: ToolSource,
  options: OutputOptions,
): AsyncGenerator<readonly OmniMessage[], void, void> {
  const { call, signal, pointTo } = execution;
  const { clock, maxOutputChars } = options;
  const output = new CappedOutput(execution, options);
  let run: ToolRun | undefined;
  try {
    if (signal.aborted) return yield output.interrupt();
    const prepared = prepare(source, call.payload);
    if (!prepared.ok) return yield output.end({ stop: "failed", note: prepared.message });
    const { tool, args } = prepared.value;
    run = new ToolRun(tool, args, { signal, clock, toolCallId: call.payload.tool_call_id, maxOutputChars, pointTo });
    for (;;) {
      const step = await run.next();
      switch (step.kind) {
        case "text": {
          const due = output.append(step.text);
          if (due.length > 0) yield due;
          break;
        }
        case "end":
          return yield output.end(step.output);
        case "threw":
          return yield output.end(failureOf(step.error));
        case "aborted":
          await run.settle();
          return yield output.interrupt();
        default:
          return unreachable(step);
      }
    }
  } catch (error) {
    // A tool whose `parse` or `run` throws before its first step; after the output's end there is nothing to add.
    const due = output.end(failureOf(error));
    if (due.length > 0) yield due;
  } finally {
    output.close();
    run?.dispose();
  }
}

function failureOf(error: unknown): ToolOutput {
  if (error instanceof ToolFailure) return { stop: "failed", note: error.message };
  const what = error instanceof Error ? error.message || error.name : String(error);
  return { stop: "failed", note: `[tool failed: ${what}]` };
}

/** The output of one call: what the tool says goes through the cap into messages. */
class CappedOutput {
  readonly #writer: ToolOutputWriter;
  readonly #cap: OutputCap;
  readonly #progress: Progress;
  readonly #onEnd: (outcome: StopReason) => void;

  constructor({ call, onProgress }: ToolExecution, { clock, maxOutputChars, onEnd }: OutputOptions) {
    this.#onEnd = onEnd;
    const toolCallId = call.payload.tool_call_id;
    this.#writer = new ToolOutputWriter(() => clock.iso(), toolCallId);
    this.#cap = new OutputCap(maxOutputChars);
    this.#progress = new Progress(clock, () =>
      onProgress({ toolCallId, bytes: this.#cap.bytes, tail: this.#cap.latest(PROGRESS_TAIL_CHARS) }),
    );
  }

  append(text: string): OmniMessage[] {
    const now = this.#cap.push(text);
    if (this.#cap.holding) this.#progress.touch();
    return this.#writer.append(now);
  }

  end({ note = "", images = [], exitCode, stop }: ToolOutput): OmniMessage[] {
    if (this.#writer.ended) return [];
    this.close();
    this.#onEnd(stop ?? "completed");
    const { lastChar } = this.#cap;
    const ownLine = note !== "" && lastChar !== "" && lastChar !== "\n" ? `\n${note}` : note;
    const last = lastChar === "" && note === "" ? NO_OUTPUT : ownLine;
    return [
      ...this.#writer.append(this.#cap.push(last)),
      ...this.#writer.append(this.#cap.finish()),
      ...this.#writer.end({
        images,
        ...(exitCode === undefined ? {} : { exitCode }),
        ...(stop === undefined ? {} : { stop }),
      }),
    ];
  }

  interrupt(): OmniMessage[] {
    if (this.#writer.ended) return [];
    this.close();
    this.#onEnd("aborted");
    return [
      ...this.#writer.append(this.#cap.finish(INTERRUPTED.length)),
      ...this.#writer.append(INTERRUPTED),
      ...this.#writer.end({ stop: "aborted" }),
    ];
  }

  /** No progress is reported after this. */
  close(): void {
    this.#progress.close();
  }
}
