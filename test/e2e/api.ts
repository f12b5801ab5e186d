// The API as a client uses it, and what every run is held to: the stream against the validator, the Trace against the
// validator, and both against each other.

import { expect } from "vitest";
import { isPayload } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import type { CompletePayload, EventPayload, PartialPayload } from "../../src/protocol/payloads.js";
import { compareStreamWithTrace, validateStream } from "../../src/protocol/validate.js";
import type { Server } from "../support/server.js";
import { type OpenOptions, openSse, type SseReader } from "../support/sse-client.js";
import type { ChatMessage } from "../support/upstream.js";

// biome-ignore lint/suspicious/noExplicitAny: an answer is whatever came; what it should be is for expectations to say
export type Loose = any;

export interface Answer {
  status: number;
  headers: Headers;
  body: Loose;
  text: string;
}

type Target = Pick<Server, "url">;

/** Calls the API with JSON; a string or bytes go out as they are. */
export async function api(
  server: Target,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(`${server.url}${path}`, {
    method,
    headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    redirect: "manual",
  });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
  const answer = {
    status: response.status,
    headers: response.headers,
    body: isJson ? JSON.parse(text) : undefined,
    text,
  };
  expect(answer.headers.get("x-request-id"), "every answer carries an id").toBeTruthy();
  if (!response.ok) {
    expect(Object.keys(answer.body ?? {}), `the shape of ${text}`).toEqual(["error"]);
    expect(answer.body.error.code).toMatch(/^[a-z_]+$/);
    expect(answer.body.error.message).not.toMatch(/\bat .*\.[jt]s:\d|\/node_modules\//);
  }
  return answer;
}

/** Makes a Session and gives its id. */
export async function makeSession(
  server: Target,
  body: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Promise<string> {
  const made = await api(server, "POST", "/api/sessions", body, headers);
  expect(made.status, made.text).toBe(201);
  return made.body.sessionId;
}

export const at = (id: string, rest = ""): string => `/api/sessions/${id}${rest}`;

/** Prompts and gives the `taskId`. */
export async function prompt(server: Target, id: string, input: unknown): Promise<string> {
  const accepted = await api(server, "POST", at(id, "/tasks"), { input });
  expect(accepted.status, accepted.text).toBe(202);
  return accepted.body.taskId;
}

export const follow = (server: Target, id: string, options: OpenOptions = {}): Promise<SseReader> =>
  openSse(server.url + at(id, "/stream"), options);

export async function decide(
  server: Target,
  id: string,
  toolCallId: string,
  decision: "allow" | "deny",
  reason?: string,
): Promise<number> {
  const body = { decision, ...(reason === undefined ? {} : { reason }) };
  return (await api(server, "POST", at(id, `/approvals/${encodeURIComponent(toolCallId)}`), body)).status;
}

/** The call that is asked about now or next. */
export async function asked(reader: SseReader, from = 0): Promise<string> {
  const event = await reader.until(({ data, name }) => name !== undefined && data.type === "approval_request", from);
  return event.data.toolCall.payload.tool_call_id;
}

export interface History {
  records: OmniMessage[];
  cursor: string;
  fragments: OmniMessage[];
}

/** The whole history, its ordinals checked. */
export async function history(server: Target, id: string, headers: Record<string, string> = {}): Promise<History> {
  const page = await api(server, "GET", at(id, "/messages"), undefined, headers);
  expect(page.status, page.text).toBe(200);
  const messages = page.body.messages as (OmniMessage & { ordinal: number })[];
  expect(messages.map(({ ordinal }) => ordinal)).toEqual(messages.map((_, index) => index));
  return {
    records: messages.map(({ ordinal: _, ...record }) => record as OmniMessage),
    cursor: page.body.cursor,
    fragments: page.body.live?.fragments ?? [],
  };
}

/** Resolves once nothing runs in the Session. */
export async function untilIdle(server: Target, id: string): Promise<void> {
  // Outside of a test there is nobody to close it, and it must not outlive this call.
  const response = await fetch(server.url + at(id, "/stream"));
  let line: string[] = [];
  for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    line.push(piece);
    if (!piece.includes("\n")) continue;
    const lines = line.join("").split("\n");
    line = lines.splice(-1);
    if (lines.some((each) => each.startsWith('data: {"type":"task_state","state":"idle"'))) return;
  }
  throw new Error("the stream ended before the Session was idle");
}

interface Lawful {
  /** The stream begins somewhere inside the Session. */
  joined?: boolean;
  /** The Task goes on. */
  running?: boolean;
}

/** Holds what a reader saw, and the Trace, to every guarantee. @returns the Trace's records. */
export async function expectLawful(
  server: Target,
  id: string,
  seen: readonly OmniMessage[],
  how: Lawful = {},
): Promise<OmniMessage[]> {
  const { records } = await history(server, id);
  expect(validateStream(seen, { mode: "stream", ...how }), "the stream").toEqual([]);
  expect(validateStream(records, { mode: "trace", running: how.running === true }), "the Trace").toEqual([]);
  expect(compareStreamWithTrace(seen, records, how), "the stream against the Trace").toEqual([]);
  const stored = await fetch(server.url + at(id, "/trace")).then((response) => response.text());
  const lines = stored.split("\n");
  expect(lines.pop(), "the Trace ends with a line feed").toBe("");
  expect(lines.map((line) => JSON.parse(line)).slice(0, records.length)).toEqual(records);
  return records;
}

/** Payloads of one type, in order. */
export function payloads<T extends (CompletePayload | PartialPayload | EventPayload)["type"]>(
  messages: readonly OmniMessage[],
  type: T,
): Extract<CompletePayload | PartialPayload | EventPayload, { type: T }>[] {
  return messages.flatMap((message) =>
    isPayload(message, type)
      ? [message.payload as Extract<CompletePayload | PartialPayload | EventPayload, { type: T }>]
      : [],
  );
}

/**
 * Holds a request to the pairing that providers demand: right after an assistant's calls come their outputs, each call
 * once, in call order, and an output stands nowhere else.
 */
export function expectPaired(messages: readonly ChatMessage[]): void {
  const seen = new Set<string>();
  for (let index = 0; index < messages.length; index++) {
    const { tool_calls: made = [] } = messages[index] as ChatMessage;
    const ids = made.map((call) => call.id);
    expect(messages[index]?.role, "an output that answers nothing").not.toBe("tool");
    const outputs = messages.slice(index + 1, index + 1 + ids.length);
    expect(outputs.map(({ role, tool_call_id }) => [role, tool_call_id])).toEqual(ids.map((id) => ["tool", id]));
    for (const id of ids) {
      expect(seen, "a call id in two places").not.toContain(id);
      seen.add(id);
      expect(id).toMatch(/^[A-Za-z0-9_.:-]{1,64}$/);
    }
    index += ids.length;
  }
}

/** The outputs of a request by call id, as text. */
export const outputsIn = (messages: readonly ChatMessage[]): string[] =>
  messages.filter(({ role }) => role === "tool").map(({ content }) => String(content));
