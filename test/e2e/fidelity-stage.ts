// A server that dies by SIGKILL between two prompts of every Session, and the expectations for what its next requests
// carry.

import { expect } from "vitest";
import { Context } from "../../src/engine/context.js";
import type { ModelSpec, Protocol } from "../../src/llm/model-spec.js";
import { anthropicMessages } from "../../src/llm/wire/anthropic-messages.js";
import { gemini } from "../../src/llm/wire/gemini.js";
import { openaiChat } from "../../src/llm/wire/openai-chat.js";
import { openaiResponses } from "../../src/llm/wire/openai-responses.js";
import type { Wire } from "../../src/llm/wire/wire.js";
import { llmRequest, modelSpec } from "../llm/support.js";
import { atFileEnd } from "../support/at-file-end.js";
import { type Server, startOmnid } from "../support/server.js";
import { openSse } from "../support/sse-client.js";
import { type Script, startUpstream, type Upstream } from "../support/upstream.js";
import { at, expectLawful, history, makeSession } from "./api.js";

export type Spoken = Exclude<Protocol, "demo">;

const WIRES: Record<Spoken, Wire> = {
  "openai-chat": openaiChat,
  "openai-responses": openaiResponses,
  "anthropic-messages": anthropicMessages,
  gemini,
};
const SPOKEN = Object.keys(WIRES) as Spoken[];
/** Names that the families are told by. */
const MODEL_IDS: Record<Spoken, string> = {
  "openai-chat": "chat-1",
  "openai-responses": "gpt-5",
  "anthropic-messages": "claude-sonnet-4-5",
  gemini: "gemini-3-pro-preview",
};

const events = (...list: object[]): Script => ({ steps: list as Record<string, unknown>[] });
/** The shortest whole answer of each protocol. */
const ANSWERS: Record<Spoken, Script> = {
  "openai-chat": events({ choices: [{ index: 0, delta: { content: "Seen." }, finish_reason: "stop" }] }),
  "openai-responses": events(
    { type: "response.output_text.delta", output_index: 0, content_index: 0, delta: "Seen." },
    { type: "response.completed", response: { status: "completed", output: [] } },
  ),
  "anthropic-messages": events(
    { type: "message_start", message: { content: [] } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "Seen." } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn" } },
    { type: "message_stop" },
  ),
  gemini: events({ candidates: [{ content: { role: "model", parts: [{ text: "Seen." }] }, finishReason: "STOP" }] }),
};

export interface Played {
  session: string;
  /** The bodies of this Session's requests before the server died, and the one after. */
  before: string[];
  after: string;
}

/** A server that dies once, with Sessions that live on. */
export class Stage {
  readonly upstream: Upstream;
  #server: Server;

  private constructor(upstream: Upstream, server: Server) {
    this.upstream = upstream;
    this.#server = server;
  }

  static async open(): Promise<Stage> {
    const upstream = await startUpstream(atFileEnd);
    const models = SPOKEN.map((protocol) => ({
      ...{ provider: "scripted", modelId: MODEL_IDS[protocol], protocol, baseUrl: upstream.url, apiKey: "sk-secret-1" },
      ...{ thinking: true, vision: true },
    }));
    const server = await startOmnid({ atEnd: atFileEnd, config: { models }, env: { OMNID_RETRY_LIMIT: "0" } });
    return new Stage(upstream, server);
  }

  get server(): Server {
    return this.#server;
  }

  /** Plays each stream into a Session of its own, kills the server, and prompts each Session again. */
  async playAll(list: readonly { name: string; protocol: Spoken; bytes: Buffer }[]): Promise<Map<string, Played>> {
    const played = new Map<string, Played>();
    for (const { name, protocol, bytes } of list) {
      const chosen = { provider: "scripted", modelId: MODEL_IDS[protocol], approvalMode: "allow-all" };
      const session = await makeSession(this.#server, chosen);
      this.upstream.script({ steps: [bytes] });
      played.set(name, { session, before: await this.#prompt(protocol, session), after: "" });
    }
    await this.#server.stop("SIGKILL");
    this.#server = await this.#server.restart();
    for (const { name, protocol } of list) {
      const entry = played.get(name) as Played;
      entry.after = (await this.#prompt(protocol, entry.session)).at(-1) ?? "";
    }
    return played;
  }

  async #prompt(protocol: Spoken, session: string): Promise<string[]> {
    const from = this.upstream.requests.length;
    this.upstream.otherwise(ANSWERS[protocol]);
    const request = { method: "POST" as const, body: { input: "Go." }, atEnd: atFileEnd };
    const reader = await openSse(this.#server.url + at(session, "/tasks"), request);
    await reader.ended;
    await expectLawful(this.#server, session, reader.messages, { joined: true });
    return this.upstream.requests.slice(from).map(({ raw }) => raw);
  }
}

/** The texts stand in `raw` in this order, byte for byte. */
export function expectInOrder(raw: string, texts: readonly string[]): void {
  let from = 0;
  for (const text of texts) {
    const found = raw.indexOf(text, from);
    expect(found, `${text.slice(0, 120)} in ${raw.slice(from, from + 4000)}`).toBeGreaterThanOrEqual(0);
    from = found + text.length;
  }
}

export const occurrences = (raw: string, text: string): number => raw.split(text).length - 1;

/** Cache marks move from request to request; all else stays. */
export const unmarked = (raw: string): string => raw.replaceAll(',"cache_control":{"type":"ephemeral"}', "");

/** A request begins with the bytes of the one before it, so that the provider's cache holds. */
export function expectPrefix(earlier: string, later: string): void {
  // What closes the list of messages and the body.
  const head = unmarked(earlier).replace(/\]\}$/, "");
  const whole = unmarked(later);
  expect(whole.slice(0, head.length)).toBe(head);
}

/** The messages that a fork of the Session under another model would begin with. */
async function contextOf(server: Server, session: string) {
  const context = new Context();
  for (const record of (await history(server, session)).records) context.push(record);
  return context.assemble();
}

const specOf = (protocol: Spoken, modelId = MODEL_IDS[protocol]): ModelSpec =>
  modelSpec({ provider: "another", protocol, modelId });

/** Nothing that only its maker can read goes to anybody else, whatever the protocol. */
export async function expectDropped(server: Server, session: string, opaque: readonly string[]): Promise<void> {
  const messages = await contextOf(server, session);
  for (const protocol of SPOKEN) {
    const { body } = WIRES[protocol].encode(llmRequest({ messages }), specOf(protocol));
    for (const value of opaque) expect(body, `${protocol} was sent ${value.slice(0, 80)}`).not.toContain(value);
    for (const member of [
      '"signature"',
      '"encrypted_content"',
      '"reasoning_details"',
      '"redacted_thinking"',
      '"phase"',
    ])
      expect(body, protocol).not.toContain(member);
    // Documented for calls of another model: it is no signature of anybody's.
    expect(body.replaceAll('"thoughtSignature":"skip_thought_signature_validator"', "")).not.toContain("thoughtSig");
    expect(body).not.toMatch(/"reasoning(_content|_text)?":"./);
  }
}
