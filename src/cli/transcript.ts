// A Session as text: what the model says on standard output, as it comes; thinking, tools and what happened on standard
// error. It is made from one view after the other, so nothing is missing where views were skipped.

import {
  type Approval,
  type Fragment,
  isPartial,
  isPayload,
  type OmniMessage,
  type ToolCallOutputPayload,
  type ToolCallPayload,
  type View,
  type ViewMessage,
} from "../client/index.js";
import type { Terminal } from "./terminal.js";
import { argumentsOf, clipped, lineOfEvent, seconds } from "./transcript-text.js";
import { isWhole, messagesOf, type Unseen } from "./unseen.js";

export interface TranscriptOptions {
  terminal: Terminal;
  unseen: Unseen;
  /** Milliseconds since 1970. */
  now: () => number;
  /** Also what the user said; whoever typed it knows. */
  withPrompts: boolean;
}

const OUTPUT_LINES = 12;

export class Transcript {
  readonly #options: TranscriptOptions;
  /** How much of a message went out while it was written, by key. */
  readonly #written = new Map<string, number>();
  /** The names of calls, by chain and id, for what is said about them later. */
  readonly #calls = new Map<string, string>();
  /** Calls that have their line. */
  readonly #shown = new Set<string>();
  /** Calls that were denied: their output says it once more. */
  readonly #denied = new Set<string>();

  constructor(options: TranscriptOptions) {
    this.#options = options;
  }

  /** Shows what is new. */
  show(view: View): void {
    const { terminal, unseen } = this.#options;
    if (!isWhole(view)) return;
    for (const entry of unseen.take(view)) this.#message(entry, view);
    const open = view.fragments.find(({ origin, type }) => origin.length === 0 && isWriting(type));
    if (open !== undefined) this.#grow(open);
    terminal.status(this.#statusOf(view));
  }

  /** The line of a call that is about to be asked about, where it was said before anything was shown. */
  showCall({ toolCall, origin }: Approval): void {
    this.#call({ ...toolCall, ...(origin === undefined ? {} : { origin }) }, indentOf(origin));
  }

  #grow({ key, type, content }: Fragment): void {
    const written = this.#written.get(key) ?? 0;
    if (content.length > written) this.#write(type === "partial_text" ? "text" : "thinking", content.slice(written));
    this.#written.set(key, content.length);
  }

  #message({ key, message }: ViewMessage, view: View): void {
    if (message.origin !== undefined) this.#ofChild(message, view);
    else if (isPayload(message, "thinking")) this.#whole(key, "thinking", message.payload.thinking);
    else if (!isPayload(message, "text")) this.#about(message, "", view);
    else if (message.payload.role === "user") this.#prompt(message.payload.text);
    else this.#whole(key, "text", message.payload.text);
  }

  /** Writes what of a message was not written while it came, and ends it. */
  #whole(key: string, kind: "text" | "thinking", content: string): void {
    const written = this.#written.get(key) ?? 0;
    this.#written.delete(key);
    this.#write(kind, content.slice(written));
    if (content === "") return;
    if (kind === "text" && !content.endsWith("\n")) this.#options.terminal.answer("\n");
    this.#options.terminal.endLine();
  }

  #write(kind: "text" | "thinking", text: string): void {
    if (text === "") return;
    if (kind === "text") this.#options.terminal.answer(text);
    else this.#options.terminal.note(text, "dim");
  }

  #prompt(text: string): void {
    if (this.#options.withPrompts) this.#options.terminal.line(`> ${text}`, "bold");
  }

  /** A child's own answer is its parent's output; here are its steps. */
  #ofChild(message: OmniMessage, view: View): void {
    const indent = indentOf(message.origin);
    if (isPayload(message, "text") && message.payload.role === "assistant") {
      this.#options.terminal.line(clipped(message.payload.text, OUTPUT_LINES, indent), "dim");
    } else if (!isPartial(message)) this.#about(message, indent, view);
  }

  #about(message: OmniMessage, indent: string, view: View): void {
    const { terminal } = this.#options;
    if (isPayload(message, "tool_call")) {
      this.#call(message, indent);
    } else if (isPayload(message, "tool_call_output")) {
      this.#output(message, indent);
    } else {
      if (isPayload(message, "approval_decision") && message.payload.decision === "deny") {
        this.#denied.add(callKey(message.origin, message.payload.tool_call_id));
      }
      const said = lineOfEvent(message, (id) => this.#nameOf(view, message.origin, id) ?? "a call");
      if (said !== undefined) terminal.line(`${indent}${said.text}`, said.style);
    }
  }

  #call({ payload, origin }: OmniMessage<ToolCallPayload>, indent: string): void {
    const { name, tool_call_id: id, arguments: args } = payload;
    const call = callKey(origin, id);
    this.#calls.set(call, name);
    if (this.#shown.has(call)) return;
    this.#shown.add(call);
    this.#options.terminal.line(`${indent}* ${name} ${argumentsOf(args)}`.trimEnd(), "cyan");
  }

  /** Also of a call that was there before anything was shown. */
  #nameOf(view: View, origin: readonly string[] | undefined, id: string): string | undefined {
    const call = callKey(origin, id);
    if (!this.#calls.has(call)) {
      for (const { message } of messagesOf(view, origin?.at(-1))) {
        if (isPayload(message, "tool_call") && message.payload.tool_call_id === id) {
          this.#calls.set(call, message.payload.name);
        }
      }
    }
    return this.#calls.get(call);
  }

  #output({ payload, origin }: OmniMessage<ToolCallOutputPayload>, indent: string): void {
    const { terminal } = this.#options;
    const { output, images = [], exit_code: code = 0, stop_reason: stop = "completed" } = payload;
    const call = callKey(origin, payload.tool_call_id);
    if (this.#denied.has(call)) return;
    // A child has said it itself.
    const isChilds = stop === "completed" && this.#calls.get(call) === "run_subagent";
    const text = isChilds ? "" : clipped(output, OUTPUT_LINES, `${indent}  `);
    if (text !== "") terminal.line(text, "dim");
    if (images.length > 0) terminal.line(`${indent}  [${images.length} images]`, "dim");
    if (stop !== "completed") terminal.line(`${indent}  ${stop}`, "red");
    else if (code !== 0) terminal.line(`${indent}  exit code ${code}`, "red");
  }

  #statusOf(view: View): string {
    const { connection, task, fragments, approvals } = view;
    const { now } = this.#options;
    if (connection.status === "waiting") {
      return `${connection.reason}; trying again in ${seconds(connection.retryAt - now())}`;
    }
    if (connection.status === "connecting") return "connecting";
    if (task === null || task.state === "idle") return "";
    if (task.retry !== undefined) return `waiting to ask the model again, at ${task.retry.retryAt.slice(11, 19)} UTC`;
    if (task.state === "compacting") return "compacting the context";
    if (approvals.length > 0) return "waiting for an approval";
    const running = runningIn(view);
    if (running !== undefined) {
      const { origin, id, content } = running;
      const tail = content.trimEnd().split("\n").at(-1) ?? "";
      return `${this.#nameOf(view, origin, id) ?? "a tool"} is running: ${tail}`;
    }
    const call = fragments.find(({ type }) => type === "partial_tool_call");
    return call === undefined ? "working" : `writing a call of ${call.name}`;
  }
}

/** A child may give its calls the ids that its parent gave. */
const callKey = (origin: readonly string[] | undefined, id: string): string => `${origin?.at(-1) ?? ""}\n${id}`;
const indentOf = (origin: readonly string[] | undefined): string => "  ".repeat(origin?.length ?? 0);
const isWriting = (type: Fragment["type"]): boolean => type === "partial_text" || type === "partial_thinking";

/** The call whose output was heard of last. */
function runningIn({ progress, fragments }: View): { origin: string[]; id: string; content: string } | undefined {
  const open = fragments.find(({ type }) => type === "partial_tool_call_output");
  const [slot, held] = Object.entries(progress).at(-1) ?? [open?.slot, undefined];
  if (slot === undefined) return undefined;
  const [origin, , id] = JSON.parse(slot) as [origin: string[], type: string, id: string];
  return { origin, id, content: held?.tail ?? open?.content ?? "" };
}
