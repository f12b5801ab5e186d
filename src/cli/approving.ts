// Answers a Session's approvals, one after the other: by asking, or as the command line says. One that somebody else
// answers is taken back here.

import { type Approval, type Client, type Decide, OmnidError, type View } from "../client/index.js";
import { askedBy, isAskable } from "./asked-by.js";
import { printable } from "./printable.js";
import { type QuestionText, questionOf } from "./question-text.js";
import { decisionOf, type Questions } from "./questions.js";
import { retried } from "./retried.js";
import type { Terminal } from "./terminal.js";
import { seconds } from "./transcript-text.js";

export interface ApprovingOptions {
  client: Client;
  terminal: Terminal;
  /** Nobody waits for an answer to arrive any more. */
  signal: AbortSignal;
  /** Undefined where there is nobody to ask. */
  questions: Questions | undefined;
  allowsAll: boolean;
  /** Shows the call that is to be answered, where it was not shown. */
  showCall: (approval: Approval) => void;
  /** There will be no more answers. */
  onEnd: () => void;
}

const NOBODY = "nobody could be asked: omnid chat ran without a terminal, and without --yes";

export class Approving {
  readonly #options: ApprovingOptions;
  readonly #answered = new Set<string>();
  #open: { key: string; takeBack: () => void } | undefined;
  #asking: Promise<void> | undefined;

  constructor(options: ApprovingOptions) {
    this.#options = options;
  }

  /** True while a person is asked: nothing else is to be written then. */
  get isAsking(): boolean {
    return this.#open !== undefined;
  }

  /**
   * Looks at what is open now; what the view says was shown before. Returns at once; `onAnswered` is called when a
   * question is over.
   */
  look(view: View, onAnswered: () => void): void {
    const { approvals } = view;
    const open = this.#open;
    if (open !== undefined && !approvals.some((each) => keyOf(each) === open.key)) open.takeBack();
    const next = approvals.find((each) => !this.#answered.has(keyOf(each)));
    if (next === undefined || this.#asking !== undefined) return;
    if (isAskable(view, next)) this.#options.showCall(next);
    else if (this.#standing === undefined) return;
    this.#answered.add(keyOf(next));
    this.#asking = this.#answer(next, askedBy(view, next)).finally(() => {
      this.#asking = undefined;
      onAnswered();
    });
  }

  /** Takes back the question that is open. */
  stop(): void {
    this.#open?.takeBack();
  }

  /** What every call gets where no person is asked. */
  get #standing(): Decide | undefined {
    const { questions, allowsAll } = this.#options;
    if (allowsAll) return { decision: "allow" };
    return questions === undefined ? { decision: "deny", reason: NOBODY } : undefined;
  }

  /** Never rejects. */
  async #answer(approval: Approval, by: string | undefined): Promise<void> {
    const decision = this.#standing ?? (await this.#ask(approval, by));
    if (decision !== undefined) await this.#send(approval, decision);
  }

  /** Until the server has it: the Task waits for nothing else. */
  async #send(approval: Approval, decision: Decide): Promise<void> {
    const { client, terminal, signal } = this.#options;
    let tries = 0;
    try {
      await retried(() => client.decide(approval, decision, { signal }), {
        signal,
        isPassing: (error) => !isOver(error),
        onWait: (error, waitMs, failures) => {
          tries = failures;
          terminal.line(`! not answered: ${String(error)}; trying again in ${seconds(waitMs)}`, "yellow");
        },
      });
    } catch {
      // A try that seemed to fail may have been the answer.
      if (!signal.aborted && tries === 0) terminal.line("  it was answered elsewhere", "yellow");
    }
  }

  async #ask(approval: Approval, by: string | undefined): Promise<Decide | undefined> {
    const { terminal } = this.#options;
    const questions = this.#options.questions as Questions;
    const { name, arguments: args } = approval.toolCall.payload;
    const back = new AbortController();
    this.#open = { key: keyOf(approval), takeBack: () => back.abort() };
    try {
      const text = questionOf(args);
      if (!(await questions.forget())) return undefined;
      if (by !== undefined) terminal.line(by, "yellow");
      terminal.line(`Allow ${printable(name)}`, "yellow");
      showCut(terminal, text);
      const keys = text.cut === undefined ? "y, n, or why not" : "y, n, v to view all of it, or why not";
      for (;;) {
        const answer = await questions.ask(`  ${keys}: `, back.signal);
        if (answer.kind === "ended") this.#options.onEnd();
        if (answer.kind !== "answer") return undefined;
        if (/^v(iew)?$/i.test(answer.text.trim())) {
          if (text.whole !== "") terminal.line(text.whole, "yellow");
          continue;
        }
        const decision = decisionOf(answer.text);
        if (decision !== undefined) return decision;
      }
    } finally {
      this.#open = undefined;
    }
  }
}

function showCut(terminal: Terminal, { whole, cut }: QuestionText): void {
  if (cut === undefined) {
    if (whole !== "") terminal.line(whole, "yellow");
    return;
  }
  terminal.line(cut.head, "yellow");
  terminal.line(`NOT SHOWN: ${cut.missing}. v shows them.`, "red");
  terminal.line(cut.tail, "yellow");
}

/** The approval waits no more, or its Session is gone. */
const isOver = (error: unknown): boolean =>
  error instanceof OmnidError && (error.code === "session_not_found" || /^approval_/.test(error.code));

const keyOf = ({ sessionId, toolCall }: Approval): string => `${sessionId} ${toolCall.payload.tool_call_id}`;
