// The Task that has a Session: from the moment a prompt claims it until its end.

import { type CompactionDeps, compact } from "../engine/compaction.js";
import { type Resumption, runTask, type TaskDeps, type TaskOutcome } from "../engine/run.js";
import type { Journal } from "./journal.js";

export const ABORT_REASONS = ["user", "shutdown", "session_deleted"] as const;
export type AbortReason = (typeof ABORT_REASONS)[number];

type Own = "context" | "systemPrompt" | "tools" | "sessionUsage" | "isCallIdTaken" | "signal" | "abortReason";
type OfSession = { journal: Journal };
export type RunDeps = Omit<TaskDeps, Own | "fragments" | "commit"> & OfSession;
export type CompactDeps = Omit<CompactionDeps, Own> & OfSession;

export class RunningTask {
  readonly taskId: string;
  readonly release: () => void;
  /** Resolves when the Session is free again and its record tells so. */
  readonly ended: Promise<void>;
  readonly #stop = new AbortController();
  readonly #accepting = new Set<Promise<void>>();
  #reason: AbortReason | null = null;
  #takesSteering = true;
  #end: () => void = () => {};
  /** False while its Prompt is being recorded: the Session is taken, and nothing of the Task is shown yet. */
  started = false;
  isCompacting = false;

  /** @param release gives back the process's place for a Task */
  constructor(taskId: string, release: () => void) {
    this.taskId = taskId;
    this.release = release;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  /** True while steering that is accepted makes one more Request. */
  get takesSteering(): boolean {
    return this.started && this.#takesSteering && !this.#stop.signal.aborted;
  }

  /** Interrupts. The first reason stands; null is for a fault. */
  stop(reason: AbortReason | null): void {
    this.#reason ??= reason;
    this.#stop.abort(this.#reason);
  }

  /** The Session is free again. */
  end(): void {
    this.#end();
  }

  /** Holds the Task from ending while something is being accepted into it. The returned function lets go. */
  accept(): () => void {
    let letGo: () => void = () => {};
    const accepting = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    this.#accepting.add(accepting);
    return () => {
      this.#accepting.delete(accepting);
      letGo();
    };
  }

  get isAccepting(): boolean {
    return this.#accepting.size > 0;
  }

  /** Resolves when what is being accepted is accepted or refused. */
  async accepted(): Promise<void> {
    while (this.#accepting.size > 0) await Promise.all(this.#accepting);
  }

  /** From here on steering is refused. */
  endSteering(): void {
    this.#takesSteering = false;
  }

  /** Runs the engine over the Session's journal. Never rejects. */
  async run(deps: RunDeps, resumption?: Resumption): Promise<TaskOutcome> {
    const { journal } = deps;
    try {
      return await runTask({
        ...deps,
        ...this.#own(deps),
        ...(resumption === undefined ? {} : { resumption }),
        fragments: journal.fragments,
        commit: journal.commit,
      });
    } catch (error) {
      const { status, error: told } = deps.onFault(error);
      return told === undefined ? { status } : { status, error: told };
    }
  }

  /** Compacts the Session's context in place of a Task. @throws what a record that cannot be written rejects with. */
  async compact(deps: CompactDeps): Promise<void> {
    await compact({ ...deps, ...this.#own(deps) }, "manual");
  }

  #own({ journal }: OfSession): Pick<TaskDeps, Own> {
    return {
      context: journal.context,
      systemPrompt: journal.meta?.system_prompt ?? "",
      tools: () => journal.tools,
      sessionUsage: () => journal.usage,
      isCallIdTaken: (id) => journal.callIds.has(id),
      signal: this.#stop.signal,
      abortReason: () => this.#reason,
    };
  }
}
