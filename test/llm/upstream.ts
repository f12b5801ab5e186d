// A provider on a local port, and a client that talks to it under a manual clock.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, expect } from "vitest";
import type { Clock } from "../../src/clock.js";
import type { LLMOutcome, LLMRequest } from "../../src/engine/ports.js";
import { createLLMClient } from "../../src/llm/client.js";
import type { ModelSpec } from "../../src/llm/model-spec.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { ManualClock } from "./manual-clock.js";
import { complete, expectDiscipline, llmRequest, modelSpec } from "./support.js";

/** A provider on a local port. */
export class Upstream {
  readonly requests: { headers: IncomingMessage["headers"]; body: string; path: string | undefined }[] = [];
  readonly sockets = new Set<Socket>();
  connections = 0;
  readonly #server: Server;
  #onClose: (() => void)[] = [];

  private constructor(answer: (response: ServerResponse, request: IncomingMessage) => void) {
    this.#server = createServer((request, response) => {
      let body = "";
      request.setEncoding("utf8").on("data", (text: string) => {
        body += text;
      });
      request.on("end", () => {
        this.requests.push({ headers: request.headers, body, path: request.url });
        answer(response, request);
      });
    });
    this.#server.on("connection", (socket) => {
      this.connections++;
      this.sockets.add(socket);
      socket.on("error", () => {}); // resets are what some tests are about
      socket.on("close", () => {
        this.sockets.delete(socket);
        for (const wake of this.#onClose.splice(0)) wake();
      });
    });
  }

  static async start(answer: (response: ServerResponse, request: IncomingMessage) => void): Promise<Upstream> {
    const upstream = new Upstream(answer);
    await new Promise<void>((resolve) => upstream.#server.listen(0, "127.0.0.1", resolve));
    running.push(upstream);
    return upstream;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  async noSockets(): Promise<void> {
    while (this.sockets.size > 0) await new Promise<void>((resolve) => this.#onClose.push(resolve));
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

export const SILENCE_MS = 1000;

let running: Upstream[] = [];
afterEach(() => {
  for (const upstream of running) upstream.stop();
  running = [];
});

export const streamHead = { "content-type": "text/event-stream" };

export function start(
  upstream: { baseUrl: string },
  clock: Clock,
  model: Partial<ModelSpec> = {},
  request: Partial<LLMRequest> = {},
) {
  const abort = new AbortController();
  let n = 0;
  const client = createLLMClient(modelSpec({ baseUrl: upstream.baseUrl, apiKey: "sk-secret", ...model }), {
    clock,
    newId: () => `id${++n}`,
    requestTimeoutMs: SILENCE_MS,
    demoDelayMs: 0,
  });
  return { abort, stream: client.stream(llmRequest({ ...request, signal: abort.signal })) };
}

export async function drain(
  stream: ReturnType<typeof start>["stream"],
): Promise<{ messages: OmniMessage[]; outcome: LLMOutcome }> {
  const messages: OmniMessage[] = [];
  for (;;) {
    const step = await stream.next();
    if (step.done === true) return { messages, outcome: step.value };
    expect(step.value.length).toBeGreaterThan(0);
    messages.push(...step.value);
  }
}

export async function exchange(
  answer: (response: ServerResponse, request: IncomingMessage) => void,
  model?: Partial<ModelSpec>,
) {
  const upstream = await Upstream.start(answer);
  const done = await drain(start(upstream, new ManualClock(), model).stream);
  expectDiscipline(done.messages);
  return { upstream, ...done };
}

export const stopOf = (messages: OmniMessage[]) =>
  (complete(messages).at(-1)?.payload as { stop_reason?: string } | undefined)?.stop_reason;
