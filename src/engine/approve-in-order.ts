// Approvals: a producer of its own beside the model stream, one call at a time, in call order. The decision is
// committed before the tool starts. A call that cannot run is not asked about: the policy lets it through to its
// failed output, in its place in the order.

import type { Clock } from "../clock.js";
import { approvalDecision } from "../protocol/builders.js";
import type { OmniMessage } from "../protocol/message.js";
import type { ToolCallPayload } from "../protocol/payloads.js";
import { reasonOf } from "../reason-of.js";
import type { Emit } from "./merge-queue.js";
import type { Answer, Approver, Decision, Environment } from "./ports.js";

type Call = OmniMessage<ToolCallPayload>;

export interface Approvals {
  /** The next call of the answer, already committed. */
  add(call: Call): void;
  /** No further call comes. */
  close(): void;
  /** Denies what is undecided, in order, and every call added from now on (`decided_by: "abort"`). */
  withdraw(): void;
  /** Resolves when all is decided and closed or withdrawn. Rejects when a decision cannot be recorded. */
  readonly done: Promise<void>;
}

export interface ApprovalDeps {
  emit: Emit;
  approver: Approver;
  environment: Environment;
  clock: Clock;
  /** Runs an allowed call. Must not throw and is not waited for. */
  start(call: Call): void;
  /** Answers a denied call. `askedForMs`: how long the question stood open. */
  deny(call: Call, decision: Decision, askedForMs: number): Promise<void>;
}

/** How long a withdrawn question may take to settle before it counts as denied. */
const WITHDRAW_GRACE_MS = 50;

export function approveInOrder(deps: ApprovalDeps): Approvals {
  const withdrawal = new AbortController();
  const waiting: Call[] = [];
  let closed = false;
  let wake: () => void = () => {};

  const run = async (): Promise<void> => {
    for (;;) {
      const call = waiting.shift();
      if (call !== undefined) await decideOne(deps, call, withdrawal.signal);
      else if (closed || withdrawal.signal.aborted) return;
      else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  };

  return {
    add: (call) => {
      waiting.push(call);
      wake();
    },
    close: () => {
      closed = true;
      wake();
    },
    withdraw: () => {
      withdrawal.abort();
      wake();
    },
    done: run(),
  };
}

async function decideOne(deps: ApprovalDeps, call: Call, withdrawn: AbortSignal): Promise<void> {
  const askedAt = deps.clock.monotonic();
  const answer = await settle(deps, call, withdrawn);
  const { decision, decidedBy, reason } = answer;
  const recorded = "recorded" in answer ? answer.recorded : () => {};
  try {
    await deps.emit([
      approvalDecision(deps.clock.iso(), {
        decision,
        tool_call_id: call.payload.tool_call_id,
        decided_by: decidedBy,
        ...(reason === undefined ? {} : { reason }),
      }),
    ]);
  } catch (error) {
    recorded(error instanceof Error ? error : new Error(String(error)));
    throw error;
  }
  recorded();
  if (decision === "allow") deps.start(call);
  else await deps.deny(call, answer, answer.askedForMs ?? deps.clock.monotonic() - askedAt);
}

async function settle(deps: ApprovalDeps, call: Call, withdrawn: AbortSignal): Promise<Decision | Answer> {
  const denied: Decision = { decision: "deny", decidedBy: "abort" };
  if (withdrawn.aborted) return denied;
  if (deps.environment.check(call) !== undefined) return { decision: "allow", decidedBy: "policy" };
  try {
    const asked = deps.approver(call, withdrawn);
    if (!(asked instanceof Promise)) return asked;
    return await firstOf(asked, deps.clock, withdrawn, denied);
  } catch (error) {
    return { decision: "deny", decidedBy: "policy", reason: reasonOf(error) };
  }
}

/** The answer; or, a grace after the withdrawal, the denial. An answer given just before the withdrawal still counts. */
function firstOf(
  asked: Promise<Decision | Answer>,
  clock: Clock,
  withdrawn: AbortSignal,
  denied: Decision,
): Promise<Decision | Answer> {
  return new Promise((resolve, reject) => {
    const finished = new AbortController();
    const onWithdraw = () => {
      void clock.sleep(WITHDRAW_GRACE_MS, finished.signal).then(() => resolve(denied));
    };
    withdrawn.addEventListener("abort", onWithdraw, { once: true });
    const release = () => {
      withdrawn.removeEventListener("abort", onWithdraw);
      finished.abort();
    };
    asked.then(resolve, reject).finally(release);
  });
}
