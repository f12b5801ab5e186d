// The envelope. What streams, what is stored and what the model sees are this one structure.

import { z } from "zod";
import {
  type CompletePayload,
  type EventPayload,
  eventPayloadSchema,
  type ModelPayload,
  modelPayloadSchema,
  type OmniPayload,
  type SessionMetaPayload,
  sessionMetaPayloadSchema,
} from "./payloads.js";

const envelope = {
  timestamp: z.iso.datetime({ offset: true }),
  origin: z.array(z.string()).optional(),
};

export const omniMessageSchema = z.discriminatedUnion("type", [
  z.looseObject({ ...envelope, type: z.literal("session_meta"), payload: sessionMetaPayloadSchema }),
  z.looseObject({ ...envelope, type: z.literal("model_msg"), payload: modelPayloadSchema }),
  z.looseObject({ ...envelope, type: z.literal("event_msg"), payload: eventPayloadSchema }),
]);

/** Names the envelope's `type` that carries a payload. */
type EnvelopeType<P> = P extends SessionMetaPayload
  ? "session_meta"
  : P extends ModelPayload
    ? "model_msg"
    : P extends EventPayload
      ? "event_msg"
      : never;

/**
 * One message. `timestamp` is ISO 8601 UTC; `origin` is the chain of child Sessions (outer to inner) that it came
 * through, absent for the Session's own.
 */
export interface OmniMessage<P extends OmniPayload = OmniPayload> {
  timestamp: string;
  type: EnvelopeType<P>;
  payload: P;
  origin?: string[];
}

export type ModelMessage = OmniMessage<ModelPayload>;
export type CompleteMessage = OmniMessage<CompletePayload>;
export type EventMessage = OmniMessage<EventPayload>;

// These three end a line for some readers (JavaScript's readline, Python's splitlines) though JSON allows them raw.
const LINE_BREAKERS = /[\u0085\u2028\u2029]/g;

/**
 * A value as JSON on one line that no reader splits: U+0085, U+2028 and U+2029 are escaped (the same JSON value), and
 * a lone surrogate is escaped by JSON.stringify itself. The same text is the SSE `data:` and the Trace line.
 */
export function toLine(value: unknown): string {
  return unbroken(JSON.stringify(value));
}

/** JSON text of somebody else's making as `toLine` would have it: the three may only stand inside its strings. */
export function unbroken(json: string): string {
  // Thrice one character: in a text of narrow characters two of them cannot be and are not looked for, and the third is
  // found at the speed of the memory. The expression alone takes as long as a quarter of the JSON.stringify before it.
  return !json.includes("\u0085") && !json.includes("\u2028") && !json.includes("\u2029")
    ? json
    : json.replace(LINE_BREAKERS, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/**
 * Checks a parsed JSON value against the protocol. The value itself is returned, not a copy, so that unknown fields
 * and the order of keys survive.
 * @returns the message, or what is wrong with it, a line for each problem.
 */
export function parseMessage(value: unknown): { message: OmniMessage } | { problems: string[] } {
  const parsed = omniMessageSchema.safeParse(value);
  if (parsed.success) return { message: value as OmniMessage };
  return { problems: parsed.error.issues.map((issue) => `${issue.path.join(".") || "message"}: ${issue.message}`) };
}
