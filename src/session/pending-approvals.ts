// The approval a Session waits for. At most one is open: approvals are asked one call at a time. The first answer wins
// in the tick in which it arrives; whoever gave it hears back once it is recorded.

import type { Clock } from "../clock.js";
import type { Answer, Approver, Decision } from "../engine/ports.js";
import type { OmniMessage } from "../protocol/message.js";
import type { ToolCallPayload } from "../protocol/payloads.js";
import { ok, type Result, refuse } from "../result.js";
import type { ApprovalView, ClientDecision } from "./types.js";

interface OpenApproval {
  view: ApprovalView;
  answered: boolean;
  resolve(answer: Decision | Answer): void;
  cancelTimer(): void;
}

export interface PendingApprovalsDeps {
  sessionId: string;
  clock: Clock;
  /** An approval that nobody answers is denied after this long; undefined: never. */
  timeoutMs: number | undefined;
  /** Whether the Session's mode, as it is now, asks a person about this tool. */
  asks(toolName: string): boolean;
  /** Whether this call has its decision on record already. */
  isDecided(toolCallId: string): boolean;
  /** What the record says of the question that is open, also when an earlier process asked it. */
  asked(): { toolCallId: string; requestedAt: string } | undefined;
  /** Puts on record that a question is open. Never rejects. */
  recordAsked(asked: { toolCallId: string; requestedAt: string }): Promise<void>;
  /** A question was opened: tell the readers. */
  onOpen(view: ApprovalView): void;
}

export class PendingApprovals {
  readonly #deps: PendingApprovalsDeps;
  #open: OpenApproval | undefined;

  constructor(deps: PendingApprovalsDeps) {
    this.#deps = deps;
  }

  get views(): ApprovalView[] {
    return this.#open === undefined ? [] : [this.#open.view];
  }

  /** The engine's approver: by policy where the mode does not ask, else a person. */
  readonly approver: Approver = (call, signal) =>
    this.#deps.asks(call.payload.name) ? this.#ask(call, signal) : { decision: "allow", decidedBy: "policy" };

  /**
   * A client's answer. Resolves once the decision is recorded; the first one wins in the tick in which it comes.
   */
  async decide(
    toolCallId: string,
    decision: ClientDecision,
  ): Promise<Result<void, "approval_not_found" | "approval_already_decided" | "storage_failed">> {
    const open = this.#open?.view.toolCall.payload.tool_call_id === toolCallId ? this.#open : undefined;
    if (open?.answered === true || (open === undefined && this.#deps.isDecided(toolCallId))) {
      return refuse("approval_already_decided", `the call ${toolCallId} was decided already`);
    }
    if (open === undefined) return refuse("approval_not_found", `no approval for ${toolCallId} is open`);
    const failure = await new Promise<Error | undefined>((resolve) => {
      open.resolve({ ...decision, decidedBy: "user", recorded: resolve });
    });
    return failure === undefined
      ? ok(undefined)
      : refuse("storage_failed", `the decision could not be recorded: ${failure.message}`);
  }

  /** The mode has changed: what is open is decided by policy if the new mode would not have asked. */
  modeChanged(): void {
    const open = this.#open;
    if (open === undefined || open.answered || this.#deps.asks(open.view.toolCall.payload.name)) return;
    open.resolve({ decision: "allow", decidedBy: "policy" });
  }

  /** The decision is on record. @returns true when it was this Session's open question. */
  settled(toolCallId: string): boolean {
    if (this.#open?.view.toolCall.payload.tool_call_id !== toolCallId) return false;
    this.#open = undefined;
    return true;
  }

  /** Forgets the question: its Task is over. */
  clear(): void {
    this.#open?.cancelTimer();
    this.#open = undefined;
  }

  /** Resolves with the answer, the clock's denial, or a denial when `signal` withdraws the question. */
  async #ask(call: OmniMessage<ToolCallPayload>, signal: AbortSignal): Promise<Decision | Answer> {
    const toolCallId = call.payload.tool_call_id;
    const known = this.#deps.asked();
    const requestedAt = known?.toolCallId === toolCallId ? known.requestedAt : this.#deps.clock.iso();
    // On record before anyone sees it, so that it is the same after a restart.
    if (known?.toolCallId !== toolCallId) await this.#deps.recordAsked({ toolCallId, requestedAt });
    if (signal.aborted) return { decision: "deny", decidedBy: "abort" };
    if (!this.#deps.asks(call.payload.name)) return { decision: "allow", decidedBy: "policy" };
    return this.#openQuestion(call, requestedAt, signal);
  }

  #openQuestion(
    call: OmniMessage<ToolCallPayload>,
    requestedAt: string,
    signal: AbortSignal,
  ): Promise<Decision | Answer> {
    const { clock, timeoutMs, sessionId } = this.#deps;
    const expiresAt = timeoutMs === undefined ? undefined : Date.parse(requestedAt) + timeoutMs;
    return new Promise((resolve) => {
      const onWithdraw = () => {
        if (!open.answered) open.resolve({ decision: "deny", decidedBy: "abort" });
      };
      const open: OpenApproval = {
        view: {
          sessionId,
          toolCall: call,
          requestedAt,
          ...(expiresAt === undefined ? {} : { expiresAt: new Date(expiresAt).toISOString() }),
        },
        answered: false,
        resolve: (answer) => {
          open.answered = true;
          open.cancelTimer();
          signal.removeEventListener("abort", onWithdraw);
          resolve(answer);
        },
        cancelTimer: () => {},
      };
      if (expiresAt !== undefined) {
        open.cancelTimer = clock.after(Math.max(0, expiresAt - clock.now()), () => {
          const askedForMs = clock.now() - Date.parse(requestedAt);
          if (!open.answered) open.resolve({ decision: "deny", decidedBy: "timeout", askedForMs });
        });
      }
      signal.addEventListener("abort", onWithdraw, { once: true });
      this.#open = open;
      this.#deps.onOpen(open.view);
    });
  }
}
