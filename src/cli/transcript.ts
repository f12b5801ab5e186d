// A Session as text: what the model says on standard output, as it comes; thinking, tools and what happened on standard
// error. It is made from one view after the other, so nothing is missing where views were skipped.

import {
  type Fragment,
  isPartial,
  isPayload,
  type OmniMessage,
  type ToolCallOutputPayload,
  type View,
  type ViewMessage,
} from "../client/index.js";
import type { Terminal } from "./terminal.js";
import { argumentsOf, clipped, lineOfEvent, seconds } from "./transcript-text.js";
import { isWhole, type Unseen } from "./unseen.js";

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
  /** Calls that were denied: their output says it once more. */
  readonly #denied = new Set<string>();

  constructor(options: TranscriptOptions) {
    this.#options = options;
  }

  /** Shows what is new. */
  show(view: View): void {
    const { terminal, unseen } = this.#options;
    if (!isWhole(view)) return;
    for (const entry of unseen.take(view)) this.#message(entry);
    const open = view.fragments.find(({ origin, type }) => origin.length === 0 && isWriting(type));
    if (open !== undefined) this.#grow(open);
    terminal.status(this.#statusOf(view));
  }

  #grow({ key, type, content }: Fragment): void {
    const written = this.#written.get(key) ?? 0;
    if (content.length > written) this.#write(type === "partial_text" ? "text" : "thinking", content.slice(written));
    this.#written.set(key, content.length);
  }

  #message({ key, message }: ViewMessage): void {
    if (message.origin !== undefined) this.#ofChild(message);
    else if (isPayload(message, "thinking")) this.#whole(key, "thinking", message.payload.thinking);
    else if (!isPayload(message, "text")) this.#about(message, "");
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
  #ofChild(message: OmniMessage): void {
    const indent = "  ".repeat(message.origin?.length ?? 0);
    if (isPayload(message, "text") && message.payload.role === "assistant") {
      this.#options.terminal.line(clipped(message.payload.text, OUTPUT_LINES, indent), "dim");
    } else if (!isPartial(message)) this.#about(message, indent);
  }

  #about(message: OmniMessage, indent: string): void {
    const { terminal } = this.#options;
    if (isPayload(message, "tool_call")) {
      const { name, tool_call_id: id, arguments: args } = message.payload;
      this.#calls.set(callKey(message.origin, id), name);
      terminal.line(`${indent}* ${name} ${argumentsOf(args)}`.trimEnd(), "cyan");
    } else if (isPayload(message, "tool_call_output")) {
      this.#output(message, indent);
    } else {
      if (isPayload(message, "approval_decision") && message.payload.decision === "deny") {
        this.#denied.add(callKey(message.origin, message.payload.tool_call_id));
      }
      const said = lineOfEvent(message, (id) => this.#calls.get(callKey(message.origin, id)) ?? "a call");
      if (said !== undefined) terminal.line(`${indent}${said.text}`, said.style);
    }
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

  #statusOf({ connection, task, fragments, progress, approvals }: View): string {
    const { now } = this.#options;
    if (connection.status === "waiting") {
      return `${connection.reason}; trying again in ${seconds(connection.retryAt - now())}`;
    }
    if (connection.status === "connecting") return "connecting";
    if (task === null || task.state === "idle") return "";
    if (task.retry !== undefined) return `waiting to ask the model again, at ${task.retry.retryAt.slice(11, 19)} UTC`;
    if (task.state === "compacting") return "compacting the context";
    if (approvals.length > 0) return "waiting for an approval";
    const output = fragments.find(({ type }) => type === "partial_tool_call_output");
    const held = Object.values(progress).at(-1);
    const tail = (held?.tail ?? output?.content ?? "").trimEnd().split("\n").at(-1) ?? "";
    const name = output === undefined ? undefined : this.#calls.get(callKey(output.origin, output.toolCallId));
    if (output !== undefined || held !== undefined) return `${name ?? "a tool"} is running: ${tail}`;
    const call = fragments.find(({ type }) => type === "partial_tool_call");
    return call === undefined ? "working" : `writing a call of ${call.name}`;
  }
}

/** A child may give its calls the ids that its parent gave. */
const callKey = (origin: readonly string[] | undefined, id: string): string => [...(origin ?? []), id].join("\n");
const isWriting = (type: Fragment["type"]): boolean => type === "partial_text" || type === "partial_thinking";
