// Folds fragments into what is open right now. A reader that joins in mid-segment gets one synthetic `start` for each
// open fragment with all its content so far; the engine closes with it whatever a producer left open.

import { unreachable } from "../result.js";
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
import { isPartial, isPayload } from "./guards.js";
import type { OmniMessage } from "./message.js";
import { contentOf } from "./partial-content.js";
import type { PartialPayload, StopReason } from "./payloads.js";

/** A segment that has started and not stopped. */
interface OpenFragment {
  origin: string[] | undefined;
  timestamp: string;
  type: PartialPayload["type"];
  name: string;
  toolCallId: string;
  content: string;
  images: string[] | undefined;
}

/** Keeps the open fragments of a stream, children's included. Memory: the text of what is open. */
export class PartialAggregator {
  #open = new Map<string, OpenFragment>();

  /**
   * Takes the next message of the stream.
   * @returns the complete message that the fragments amount to, when this message stops a segment.
   */
  push(message: OmniMessage): OmniMessage | undefined {
    if (!isPartial(message)) return undefined;
    const { payload } = message;
    const key = keyOf(message);
    if (payload.event_type === "start") {
      this.#open.set(key, {
        origin: message.origin,
        timestamp: message.timestamp,
        type: payload.type,
        name: payload.type === "partial_tool_call" ? payload.name : "",
        toolCallId: "tool_call_id" in payload ? String(payload.tool_call_id) : "",
        content: contentOf(payload),
        images: payload.type === "partial_tool_call_output" ? payload.images : undefined,
      });
      return undefined;
    }
    const fragment = this.#open.get(key);
    if (fragment === undefined) return undefined;
    fragment.content += contentOf(payload);
    if (payload.type === "partial_tool_call_output" && payload.images !== undefined) fragment.images = payload.images;
    if (payload.event_type === "delta") return undefined;
    this.#open.delete(key);
    return whole(fragment, message.timestamp, payload.stop_reason);
  }

  /** Drops what a child left open: nothing more of it will come. */
  forget(childSessionId: string): void {
    for (const [key, { origin }] of this.#open) if (origin?.[0] === childSessionId) this.#open.delete(key);
  }

  get isEmpty(): boolean {
    return this.#open.size === 0;
  }

  /** One synthetic `start` for each open fragment, holding all its content so far, in order of opening. */
  fragments(): OmniMessage[] {
    return [...this.#open.values()].map((open) => withChain(startOf(open), open.origin));
  }

  /**
   * What closes the open fragments of this Session itself (not its children's): for each the `stop` and the complete
   * message, with `stop_reason`. The caller pushes them back by sending them down the stream.
   * @param outputNote what a tool's output says last, when given
   */
  closers(at: string, stop: StopReason, which: "model" | "all" = "all", outputNote?: string): OmniMessage[] {
    const due: OmniMessage[] = [];
    for (const open of this.#open.values()) {
      if (open.origin !== undefined && open.origin.length > 0) continue;
      const isOutput = open.type === "partial_tool_call_output";
      if (which === "model" && isOutput) continue;
      let closed = open;
      if (isOutput && outputNote !== undefined) {
        due.push(partialToolCallOutput(at, "delta", { tool_call_id: open.toolCallId, output: outputNote }));
        closed = { ...open, content: open.content + outputNote };
      }
      due.push(stopOf(closed, at, stop), whole(closed, at, stop));
    }
    return due;
  }
}

function keyOf(message: OmniMessage<PartialPayload>): string {
  const { payload } = message;
  const own = isPayload(message, "partial_text") || isPayload(message, "partial_thinking") ? "" : payload.tool_call_id;
  // A Session's own text is most of all traffic: its key is a constant.
  if (message.origin === undefined && own === "") return payload.type;
  return `${message.origin?.join("/") ?? ""}\n${payload.type}\n${String(own)}`;
}

function withChain(message: OmniMessage, origin: string[] | undefined): OmniMessage {
  return origin === undefined ? message : { ...message, origin };
}

function startOf(open: OpenFragment): OmniMessage {
  const { timestamp: at, content, toolCallId: tool_call_id } = open;
  switch (open.type) {
    case "partial_text":
      return partialText(at, "start", content);
    case "partial_thinking":
      return partialThinking(at, "start", content);
    case "partial_tool_call":
      return partialToolCall(at, "start", { name: open.name, tool_call_id, arguments: content });
    case "partial_tool_call_output": {
      const images = open.images === undefined ? {} : { images: open.images };
      return partialToolCallOutput(at, "start", { tool_call_id, output: content, ...images });
    }
    default:
      return unreachable(open.type);
  }
}

function stopOf(open: OpenFragment, at: string, stop: StopReason): OmniMessage {
  const { name, toolCallId: tool_call_id } = open;
  switch (open.type) {
    case "partial_text":
      return partialText(at, "stop", "", stop);
    case "partial_thinking":
      return partialThinking(at, "stop", "", stop);
    case "partial_tool_call":
      return partialToolCall(at, "stop", { name, tool_call_id }, stop);
    case "partial_tool_call_output":
      return partialToolCallOutput(at, "stop", { tool_call_id }, stop);
    default:
      return unreachable(open.type);
  }
}

function whole(open: OpenFragment, at: string, stop?: StopReason): OmniMessage {
  const end = stop === undefined ? {} : { stop_reason: stop };
  const make = (): OmniMessage => {
    switch (open.type) {
      case "partial_text":
        return assistantText(at, open.content, end);
      case "partial_thinking":
        return thinking(at, open.content, end);
      case "partial_tool_call":
        return toolCall(at, { name: open.name, arguments: open.content, tool_call_id: open.toolCallId, ...end });
      case "partial_tool_call_output": {
        const images = open.images === undefined ? {} : { images: open.images };
        return toolCallOutput(at, { output: open.content, tool_call_id: open.toolCallId, ...images, ...end });
      }
      default:
        return unreachable(open.type);
    }
  };
  return withChain(make(), open.origin);
}
