// Parents and children behind a scripted provider: which child answers what is told by its prompt.

import { expect } from "vitest";
import type { OmniMessage } from "../../src/protocol/message.js";
import { compareStreamWithTrace, validateStream } from "../../src/protocol/validate.js";
import { api, at, follow, history, type Loose, payloads } from "../e2e/api.js";
import type { Server } from "./server.js";
import type { SseReader } from "./sse-client.js";
import { calls, type Script, type Upstream } from "./upstream.js";

type Target = Pick<Server, "url">;

/** A batch that hands each prompt to a child. */
export const delegate = (...prompts: string[]): Script =>
  calls(
    ...prompts.map((prompt, index) => ({
      id: `sub_${index}`,
      name: "run_subagent",
      args: { prompt, description: `child ${prompt}` },
    })),
  );

/** Gives each child its own scripts, one for each of its Requests; `parent` is the parent's. */
export function family(upstream: Upstream, parent: Script[], children: Record<string, Script[]>): void {
  const left = new Map(Object.entries({ ...children, "": parent }).map(([name, scripts]) => [name, [...scripts]]));
  upstream.by(({ messages }) => {
    const texts = messages.flatMap(({ role, content }) => (role === "user" ? [String(content)] : []));
    const name = Object.keys(children).find((prompt) => texts[0] === prompt) ?? "";
    return left.get(name)?.shift();
  });
}

/** The children that a stream points to, in order. */
export const pointers = (messages: readonly OmniMessage[]): string[] =>
  payloads(
    messages.filter(({ origin }) => origin === undefined),
    "subagent",
  ).map(({ session_id }) => session_id);

/** Resolves with the child that the parent's stream points to next. */
export async function childOf(reader: SseReader, number = 0): Promise<string> {
  let seen = -1;
  const { data } = await reader.until(({ name, data }) => {
    if (name !== undefined || data.payload.type !== "subagent") return false;
    seen += 1;
    return seen === number;
  });
  return data.payload.session_id;
}

/** What a parent's stream showed of a child, as the child's own stream has it. */
export const ofChild = (messages: readonly OmniMessage[], childId: string): OmniMessage[] =>
  messages.flatMap(({ origin, ...message }) => (origin?.join() === childId ? [message as OmniMessage] : []));

/** Everything that a child's Channel has carried since the server began, from its replay. */
export async function replayOf(server: Target, childId: string): Promise<OmniMessage[]> {
  const { cursor } = await history(server, childId);
  const [epoch, seq] = cursor.split("-");
  const reader = await follow(server, childId, { lastEventId: `${epoch}-0` });
  await reader.until(({ name, data }) => name !== undefined && data.type === "task_state");
  expect(reader.messages).toHaveLength(Number(seq));
  reader.close();
  return reader.messages;
}

/**
 * Holds a child that worked for its parent to what is promised: its Trace is lawful, its own stream is its Trace, and
 * the parent's stream has its session_meta and then exactly its stream.
 */
export async function expectChild(server: Target, childId: string, parentSaw: readonly OmniMessage[]): Promise<void> {
  const { records } = await history(server, childId);
  const own = await replayOf(server, childId);
  expect(validateStream(records, { mode: "trace" }), "the child's Trace").toEqual([]);
  expect(validateStream(own, { mode: "stream" }), "the child's stream").toEqual([]);
  expect(compareStreamWithTrace(own, records), "the child's stream against its Trace").toEqual([]);
  expect(ofChild(parentSaw, childId), "what the parent's stream has of it").toEqual([records[0], ...own]);
}

/** Decides a child's open call at the child. */
export async function decideAt(server: Target, view: Loose, decision: "allow" | "deny"): Promise<number> {
  const { sessionId, toolCall } = view;
  const answer = await api(server, "POST", at(sessionId, `/approvals/${toolCall.payload.tool_call_id}`), { decision });
  return answer.status;
}
