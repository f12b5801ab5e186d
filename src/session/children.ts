// A Session's children at work: each is a Session of its own, and all that it says while it works for its parent is
// shown on the parent's stream too, with `origin`, in the tick in which the child shows it, after its own Trace has it.
//
// Order: the child is made; the pointer to it is recorded and shown; its `session_meta`; then its messages. A crash
// leaves at worst a child that nothing points to and that has said nothing. A child that does not end in its grace is cut off
// from the parent's stream: nothing of it comes after the parent's `abort`.

import type { Clock } from "../clock.js";
import { withOrigin } from "../protocol/builders.js";
import { type OmniMessage, toLine } from "../protocol/message.js";
import type { Result } from "../result.js";
import { CHILD_GRACE_MS, type RunSubagent, type SubagentOutput, type SubagentTask } from "../tools/run-subagent.js";
import { type ToolContext, ToolFailure } from "../tools/tool.js";
import { ChildAnswer } from "./child-answer.js";
import type { Journal } from "./journal.js";
import { ABORT_REASONS, type AbortReason } from "./running-task.js";
import type { ApprovalMode, ApprovalView, SessionRefusal, TaskView } from "./types.js";

/** What a child tells the Session for which it works. */
export interface ParentLink {
  /** The mode that holds for the child now. */
  approvalMode(): ApprovalMode;
  /** The child has shown a message. */
  shown(message: OmniMessage): void;
  /** A server event of the child, for the parent's readers too. */
  announced(event: object): void;
  /** The number of its open approvals may be another. */
  changed(): void;
  ended(task: Pick<TaskView, "status" | "error">): void;
}

/** A child as its parent uses it. */
export interface ChildSession {
  readonly id: string;
  /** The record with which its Trace began. */
  readonly firstRecord: OmniMessage;
  /** The number of its Trace's records. */
  readonly recordCount: number;
  approvals(): ApprovalView[];
  /** Runs a prompt; `parent` hears of the Task until its end. Resolves once it runs, or says why it does not. */
  runFor(parent: ParentLink, prompt: string): Promise<Result<void, SessionRefusal>>;
  stop(reason: AbortReason | null): boolean;
  /** The parent's mode, which holds for the child, is another now. */
  modeInherited(mode: ApprovalMode): void;
}

/** Makes a Session's children and takes them back. */
export interface ChildHost {
  spawn(task: SubagentTask): Promise<Result<ChildSession, SessionRefusal>>;
  /** Removes a child that has said nothing. Never rejects. */
  discard(childId: string): Promise<void>;
}

export interface ChildrenDeps extends ChildHost {
  clock: Clock;
  journal: Pick<Journal, "commit" | "fragments">;
  approvalMode(): ApprovalMode;
  /** Sends a server event to the readers. */
  announce(json: string): void;
  /** The number of the children's open approvals is another. */
  onPending(): void;
  /** A child is over: what it used is to be kept. */
  onEnded(childId: string): void;
}

const ABORTED: SubagentOutput = { text: "", stop: "aborted" };

export class Children {
  readonly #deps: ChildrenDeps;
  readonly #working = new Map<string, ChildSession>();
  /** Of each child that the Channel has carried: how many of its records that was. */
  readonly #carried: Map<string, number>;
  #pending = 0;

  /** @param carried what an earlier time in memory left, whose Channel goes on */
  constructor(deps: ChildrenDeps, carried: Readonly<Record<string, number>> = {}) {
    this.#deps = deps;
    this.#carried = new Map(Object.entries(carried));
  }

  get atWork(): number {
    return this.#working.size;
  }

  /** The open approvals of the children at work, as the parent's readers see them. */
  get approvals(): ApprovalView[] {
    return [...this.#working.values()].flatMap((child) => child.approvals().map((view) => ofChild(child.id, view)));
  }

  /** How many records of each child the Channel's present position includes; undefined when it has carried none. */
  get carried(): Record<string, number> | undefined {
    for (const child of this.#working.values()) this.#carried.set(child.id, child.recordCount);
    return this.#carried.size === 0 ? undefined : Object.fromEntries(this.#carried);
  }

  modeChanged(mode: ApprovalMode): void {
    for (const child of this.#working.values()) child.modeInherited(mode);
  }

  /** What the tool `run_subagent` does. */
  readonly run: RunSubagent = async (task, context) => {
    const made = await this.#deps.spawn(task);
    if (!made.ok) throw new ToolFailure(`No subagent could be started: ${made.message}.`);
    const child = made.value;
    if (!(await this.#pointTo(child, context))) return ABORTED;
    this.#working.set(child.id, child);
    this.#show(child, child.firstRecord);
    try {
      if (context.signal.aborted) return ABORTED;
      return await this.#follow(child, task.prompt, context.signal);
    } finally {
      this.#carried.set(child.id, child.recordCount);
      this.#working.delete(child.id);
      this.#deps.journal.fragments.forget(child.id);
      this.#deps.onEnded(child.id);
      this.#countPending();
    }
  };

  /** @returns false when the call was aborted before: then there is no such child. */
  async #pointTo(child: ChildSession, context: ToolContext): Promise<boolean> {
    let isPointedTo = false;
    try {
      if (context.signal.aborted) return false;
      await context.pointTo(child.id);
      isPointedTo = true;
      return true;
    } finally {
      if (!isPointedTo) await this.#deps.discard(child.id);
    }
  }

  /** Runs the prompt in the child to its end, or to the end of its grace after an abort. */
  #follow(child: ChildSession, prompt: string, signal: AbortSignal): Promise<SubagentOutput> {
    const answer = new ChildAnswer();
    return new Promise<SubagentOutput>((resolve, reject) => {
      let cancelGrace = () => {};
      const end = (output: SubagentOutput) => {
        signal.removeEventListener("abort", onAbort);
        cancelGrace();
        resolve(output);
      };
      const onAbort = () => {
        cancelGrace = this.#deps.clock.after(CHILD_GRACE_MS, () => end(ABORTED));
        child.stop(reasonOf(signal));
      };
      signal.addEventListener("abort", onAbort, { once: true });
      const link: ParentLink = {
        approvalMode: this.#deps.approvalMode,
        shown: (message) => {
          answer.push(message);
          this.#show(child, message);
        },
        announced: (event) => this.#announce(child, event),
        changed: () => this.#countPending(),
        ended: (task) => end(answer.output(task)),
      };
      child.runFor(link, prompt).then((begun) => {
        if (!begun.ok) end({ text: "", stop: "failed", note: `[the subagent did not start: ${begun.message}]` });
      }, reject);
    });
  }

  #show(child: ChildSession, message: OmniMessage): void {
    if (!this.#working.has(child.id)) return;
    // Nothing of it is for the parent's Trace, so it is shown in this tick.
    void this.#deps.journal.commit([withOrigin(message, child.id)]);
  }

  #announce(child: ChildSession, event: object): void {
    if (!this.#working.has(child.id)) return;
    this.#deps.announce(toLine(ofChild(child.id, event)));
  }

  #countPending(): void {
    const pending = this.approvals.length;
    if (pending === this.#pending) return;
    this.#pending = pending;
    this.#deps.onPending();
  }
}

/** A child's event as its parent's readers get it. */
function ofChild<E extends { origin?: string[]; toolCall?: OmniMessage }>(childId: string, event: E): E {
  const hop = { origin: [childId, ...(event.origin ?? [])] };
  return event.toolCall === undefined
    ? { ...event, ...hop }
    : { ...event, ...hop, toolCall: withOrigin(event.toolCall, childId) };
}

const reasonOf = (signal: AbortSignal): AbortReason | null =>
  ABORT_REASONS.find((reason) => reason === signal.reason) ?? null;
