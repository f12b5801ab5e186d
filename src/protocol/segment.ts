// The streaming discipline, made impossible to break: start, delta*, stop, then the complete message whose content is
// the concatenation of the deltas. A decoder says what it read ("text, 3 characters"); the writer makes the messages.
//
// Model side: one segment is on the stream at a time. Fragments of a later one (interleaved tool calls) wait in it and
// go out when its turn comes. A text or thinking segment starts at its first character, so an empty one leaves nothing,
// unless it carries fidelity. A tool call starts when its name is known.

import {
  assistantText,
  partialText,
  partialThinking,
  partialToolCall,
  partialToolCallOutput,
  thinking,
  toolCall,
  toolCallOutput,
} from "./builders.js";
import type { OmniMessage } from "./message.js";
import type { Fidelity, StopReason } from "./payloads.js";

/** A text or thinking segment being written. After `end`, further fragments are a bug and throw. */
export interface ContentSegment {
  append(delta: string): void;
  /** Provider data for the complete message; the last call wins. */
  setFidelity(fidelity: Fidelity): void;
  end(stop?: StopReason): void;
  readonly ended: boolean;
  readonly content: string;
}

/** A tool call being written. The first `identify` with a name fixes id and name for good. */
export interface ToolCallSegment extends ContentSegment {
  identify(name: string, toolCallId: string): void;
  readonly identified: boolean;
}

type Kind = "text" | "thinking" | "tool_call";

class Segment implements ToolCallSegment {
  content = "";
  ended = false;
  identified = false;
  started = false;
  /** What has not gone out yet, because an earlier segment is still open or the name is not known. */
  waiting = "";
  stop: StopReason | undefined;
  fidelity: Fidelity | undefined;
  name = "";
  toolCallId = "";

  constructor(
    readonly kind: Kind,
    readonly pump: (added?: number) => void,
  ) {}

  identify(name: string, toolCallId: string): void {
    if (this.identified) return;
    this.identified = true;
    this.name = name;
    this.toolCallId = toolCallId;
    this.pump();
  }

  append(delta: string): void {
    if (this.ended) throw new Error(`a fragment after the end of a ${this.kind} segment`);
    if (delta === "") return;
    this.content += delta;
    this.waiting += delta;
    this.pump(delta.length);
  }

  setFidelity(fidelity: Fidelity): void {
    this.fidelity = fidelity;
  }

  end(stop?: StopReason): void {
    if (this.ended) return;
    this.ended = true;
    this.stop = stop;
    this.pump();
  }
}

/** Writes the segments of one model answer, in order. `take` hands over the messages that are due. */
export class SegmentWriter {
  readonly #now: () => string;
  /** Segments not yet closed on the stream, in order of their opening; the first is the one on the stream. */
  #segments: Segment[] = [];
  #due: OmniMessage[] = [];
  #chars = 0;
  #count = 0;

  /** @param now gives timestamps, ISO 8601 UTC with milliseconds. */
  constructor(now: () => string) {
    this.#now = now;
  }

  openText(): ContentSegment {
    return this.#open("text");
  }

  openThinking(): ContentSegment {
    return this.#open("thinking");
  }

  openToolCall(): ToolCallSegment {
    return this.#open("tool_call");
  }

  /** A complete message that comes without fragments (media); it takes its place after the segments opened before it. */
  whole(make: (at: string) => OmniMessage): void {
    // Media is rare and never streams: what is open is over by the time it comes.
    this.endAll();
    this.#due.push(make(this.#now()));
  }

  /** Ends every segment that is open, in order, each with `stop`. */
  endAll(stop?: StopReason): void {
    for (const segment of [...this.#segments]) segment.end(stop);
  }

  /** How many segments were opened so far. */
  get count(): number {
    return this.#count;
  }

  /** The characters of all segments so far, also of those that wait. */
  get chars(): number {
    return this.#chars;
  }

  /** The messages that became due since the last call, in stream order. */
  take(): OmniMessage[] {
    const due = this.#due;
    this.#due = [];
    return due;
  }

  #open(kind: Kind): Segment {
    const segment = new Segment(kind, (added = 0) => {
      this.#chars += added;
      this.#pump();
    });
    this.#segments.push(segment);
    this.#count += 1;
    return segment;
  }

  #pump(): void {
    for (let segment = this.#segments[0]; segment !== undefined; segment = this.#segments[0]) {
      this.#flush(segment);
      if (!segment.ended) return;
      this.#close(segment);
      this.#segments.shift();
    }
  }

  #flush(segment: Segment): void {
    if (segment.kind === "tool_call" ? !segment.identified : segment.waiting === "" && !segment.started) return;
    const at = this.#now();
    if (!segment.started) {
      segment.started = true;
      this.#due.push(fragment(at, segment, "start"));
    }
    if (segment.waiting !== "") {
      this.#due.push(fragment(at, segment, "delta"));
      segment.waiting = "";
    }
  }

  #close(segment: Segment): void {
    const at = this.#now();
    if (!segment.started) {
      // A call whose name never came is not a call; hidden reasoning is a complete message with empty text.
      if (segment.kind === "tool_call" || segment.fidelity === undefined) return;
      this.#due.push(fragment(at, segment, "start"));
    }
    this.#due.push(fragment(at, segment, "stop"), complete(at, segment));
  }
}

function fragment(at: string, segment: Segment, event: "start" | "delta" | "stop"): OmniMessage {
  const added = event === "delta" ? segment.waiting : "";
  const stop = event === "stop" ? segment.stop : undefined;
  if (segment.kind === "text") return partialText(at, event, added, stop);
  if (segment.kind === "thinking") return partialThinking(at, event, added, stop);
  return partialToolCall(at, event, { name: segment.name, tool_call_id: segment.toolCallId, arguments: added }, stop);
}

function complete(at: string, segment: Segment): OmniMessage {
  const end: { fidelity?: Fidelity; stop_reason?: StopReason } = {};
  if (segment.fidelity !== undefined) end.fidelity = segment.fidelity;
  if (segment.stop !== undefined) end.stop_reason = segment.stop;
  if (segment.kind === "text") return assistantText(at, segment.content, end);
  if (segment.kind === "thinking") return thinking(at, segment.content, end);
  return toolCall(at, {
    name: segment.name,
    arguments: segment.content,
    tool_call_id: segment.toolCallId,
    ...end,
  });
}

/** Writes the output of one tool call by the same discipline. Each method returns the messages that are due. */
export class ToolOutputWriter {
  readonly #now: () => string;
  readonly #toolCallId: string;
  #content = "";
  #started = false;
  #ended = false;

  constructor(now: () => string, toolCallId: string) {
    this.#now = now;
    this.#toolCallId = toolCallId;
  }

  get ended(): boolean {
    return this.#ended;
  }

  get content(): string {
    return this.#content;
  }

  append(delta: string): OmniMessage[] {
    if (this.#ended) throw new Error(`output of ${this.#toolCallId} after its end`);
    if (delta === "") return [];
    const due = this.#start();
    this.#content += delta;
    due.push(partialToolCallOutput(this.#now(), "delta", { tool_call_id: this.#toolCallId, output: delta }));
    return due;
  }

  /** Ends the output. Images are not incremental: they come whole, in one delta and in the complete message. */
  end(with_: { images?: string[]; exitCode?: number; stop?: StopReason } = {}): OmniMessage[] {
    if (this.#ended) return [];
    const due = this.#start();
    this.#ended = true;
    const at = this.#now();
    const id = this.#toolCallId;
    const { images, exitCode, stop } = with_;
    if (images !== undefined && images.length > 0) {
      due.push(partialToolCallOutput(at, "delta", { tool_call_id: id, images }));
    }
    due.push(partialToolCallOutput(at, "stop", { tool_call_id: id }, stop));
    due.push(
      toolCallOutput(at, {
        output: this.#content,
        tool_call_id: id,
        ...(images !== undefined && images.length > 0 ? { images } : {}),
        ...(exitCode === undefined ? {} : { exit_code: exitCode }),
        ...(stop === undefined ? {} : { stop_reason: stop }),
      }),
    );
    return due;
  }

  #start(): OmniMessage[] {
    if (this.#started) return [];
    this.#started = true;
    return [partialToolCallOutput(this.#now(), "start", { tool_call_id: this.#toolCallId })];
  }
}
