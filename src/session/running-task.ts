// The Task that has a Session: from the moment a prompt claims it until its end.

import type { Clock } from "../clock.js";
import type { Approver, Environment, LLMClient, ThinkingLevel } from "../engine/ports.js";
import { runTask, type TaskDeps, type TaskOutcome } from "../engine/run.js";
import type { Journal } from "./journal.js";

export type AbortReason = "user" | "shutdown" | "session_deleted";

export class RunningTask {
  readonly taskId: string;
  readonly #stop = new AbortController();
  #reason: AbortReason | null = null;
  /** False while its Prompt is being recorded: the Session is taken, and nothing of the Task is shown yet. */
  started = false;
  /** Resolves when the Session is free again. */
  ended: Promise<void> = Promise.resolve();

  constructor(taskId: string) {
    this.taskId = taskId;
  }

  /** Interrupts. The first reason stands. */
  stop(reason: AbortReason): void {
    this.#reason ??= reason;
    this.#stop.abort();
  }

  /** Runs the engine over the Session's journal. Never rejects. */
  async run(deps: {
    sessionId: string;
    journal: Journal;
    llm: LLMClient;
    environment: Environment;
    clock: Clock;
    approver: Approver;
    thinkingLevel: ThinkingLevel;
    maxTurns: number;
    retry: TaskDeps["retry"];
    waitToRetry: TaskDeps["waitToRetry"];
    onProgress: TaskDeps["onProgress"];
    onFault(error: unknown): TaskOutcome;
  }): Promise<TaskOutcome> {
    const { journal } = deps;
    try {
      return await runTask({
        ...deps,
        fragments: journal.fragments,
        context: journal.context,
        commit: journal.commit,
        systemPrompt: journal.meta?.system_prompt ?? "",
        tools: journal.meta?.tools ?? deps.environment.definitions(),
        sessionUsage: () => journal.usage,
        isCallIdTaken: (id) => journal.callIds.has(id),
        signal: this.#stop.signal,
        abortReason: () => this.#reason,
      });
    } catch (error) {
      return deps.onFault(error);
    }
  }
}
