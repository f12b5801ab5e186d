// A scripted provider on loopback that speaks the chat protocol. Each request gets the next script; what was asked is
// kept byte for byte. A request without a script is a fault of the test, and fails it.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import type { AtEnd } from "./server.js";

/** Opened once, by whoever holds it. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

export function gate(): Gate {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** An object is one chunk of the protocol, a string or bytes go out as they are, a gate holds everything back. */
export type Step = Record<string, unknown> | string | Buffer | Gate;

export interface Script {
  /** 200 unless given. */
  status?: number;
  headers?: Record<string, string>;
  steps: Step[];
  /** How it ends: properly (default), with a reset, or not at all until the client leaves. */
  end?: "close" | "reset" | "never";
}

export interface ChatMessage {
  role: "system" | "user" | "assistant" | "tool";
  content: unknown;
  tool_call_id?: string;
  tool_calls?: { id: string; type: string; function: { name: string; arguments: string } }[];
}

export interface UpstreamRequest {
  readonly raw: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: { model: string; messages: ChatMessage[]; tools?: unknown[]; stream: boolean };
  /** Resolves when its connection is gone or its answer is out. */
  readonly closed: Promise<void>;
}

export interface Upstream {
  /** What `baseUrl` is to be. */
  readonly url: string;
  readonly requests: UpstreamRequest[];
  /** Scripts for the next requests, in order. */
  script(...scripts: Script[]): void;
  /** What a request gets for which there is no script, from now on. */
  otherwise(script: Script | ((body: UpstreamRequest["body"]) => Script)): void;
  /** Scripts by what is asked, for requests whose order is not known. They come before the others. */
  by(pick: (body: UpstreamRequest["body"]) => Script | undefined): void;
  /** Resolves with the request of that number, counted from 0, once it has come. */
  request(number: number): Promise<UpstreamRequest>;
  /** A configuration whose only models are `scripted/<modelId>` here. */
  config(more?: Record<string, unknown>): Record<string, unknown>;
}

export const UPSTREAM_KEY = "sk-upstream-secret-0123456789";

export async function startUpstream(atEnd: AtEnd = onTestFinished): Promise<Upstream> {
  const scripts: Script[] = [];
  let fallback: ((body: UpstreamRequest["body"]) => Script) | undefined;
  let pick: (body: UpstreamRequest["body"]) => Script | undefined = () => undefined;
  const requests: UpstreamRequest[] = [];
  const faults: string[] = [];
  const waiting = new Set<() => void>();
  const server = createServer((request, response) => {
    void (async () => {
      const raw = await bodyOf(request);
      const closed = new Promise<void>((resolve) => response.once("close", () => resolve()));
      const body = JSON.parse(raw) as UpstreamRequest["body"];
      requests.push({ raw, headers: request.headers, body, closed });
      for (const look of waiting) look();
      const script = pick(body) ?? scripts.shift() ?? fallback?.(body);
      if (script === undefined) faults.push(`request ${requests.length - 1} has no script: ${raw.slice(-300)}`);
      await play(script ?? { status: 400, steps: ['{"error":{"message":"the script is over"}}'] }, response);
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    if (faults.length > 0) throw new Error(faults.join("\n"));
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  return {
    url,
    requests,
    script: (...more) => void scripts.push(...more),
    otherwise: (script) => {
      fallback = typeof script === "function" ? script : () => script;
    },
    by: (chosen) => {
      pick = chosen;
    },
    request: (number) =>
      new Promise((resolve) => {
        const look = () => {
          const found = requests[number];
          if (found === undefined) return;
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
      }),
    config: (more = {}) => ({
      models: [
        { provider: "scripted", modelId: "m", protocol: "openai-chat", baseUrl: url, apiKey: UPSTREAM_KEY, ...more },
      ],
      defaultModel: { provider: "scripted", modelId: "m" },
    }),
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString("utf8");
}

async function play(script: Script, response: ServerResponse): Promise<void> {
  const gone = new Promise<void>((resolve) => response.once("close", () => resolve()));
  response.writeHead(script.status ?? 200, { "content-type": "text/event-stream", ...script.headers });
  response.flushHeaders();
  for (const step of script.steps) {
    if (response.destroyed) return;
    if (typeof step === "string" || Buffer.isBuffer(step)) await written(response, step);
    else if (isGate(step)) await Promise.race([step.opened, gone]);
    else await written(response, `data: ${JSON.stringify(step)}\n\n`);
  }
  switch (script.end ?? "close") {
    case "close":
      response.end();
      break;
    case "reset":
      response.socket?.resetAndDestroy();
      break;
    case "never":
      await gone;
  }
}

const isGate = (step: object): step is Gate => "opened" in step;

function written(response: ServerResponse, bytes: string | Buffer): Promise<void> {
  return new Promise((resolve) => {
    if (response.destroyed) return resolve();
    // Resolves also for one that has gone: then there is nobody to write for.
    response.once("close", resolve);
    response.write(bytes, () => {
      response.removeListener("close", resolve);
      resolve();
    });
  });
}

const choice = (delta: Record<string, unknown>, finish_reason: string | null = null) => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  choices: [{ index: 0, delta, finish_reason }],
});

/** Text in the pieces given. */
export const say = (...pieces: string[]): Step[] => pieces.map((content) => choice({ content }));

export const think = (...pieces: string[]): Step[] => pieces.map((reasoning_content) => choice({ reasoning_content }));

/** One whole call; `args` is text as it is, or a value. */
export function call(index: number, id: string, name: string, args: unknown): Step[] {
  const text = typeof args === "string" ? args : JSON.stringify(args);
  const half = Math.ceil(text.length / 2);
  return [
    choice({ tool_calls: [{ index, id, type: "function", function: { name, arguments: text.slice(0, half) } }] }),
    choice({ tool_calls: [{ index, function: { arguments: text.slice(half) } }] }),
  ];
}

/** Chunks as the bytes of one write. */
export const packed = (steps: readonly Step[]): string =>
  steps.map((step) => (typeof step === "string" ? step : `data: ${JSON.stringify(step)}\n\n`)).join("");

export const DONE = "data: [DONE]\n\n";

/** The end of an answer. */
export function finish(reason: "stop" | "tool_calls" | "length" | "content_filter", usage?: UpstreamUsage): Step[] {
  const counts = usage === undefined ? [] : [{ choices: [], usage }];
  return [choice({}, reason), ...counts, DONE];
}

export interface UpstreamUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
}

export const usage = (prompt: number, completion: number): UpstreamUsage => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
});

/** A script that says one text and stops. */
export const answer = (...pieces: string[]): Script => ({
  steps: [...say(...pieces), ...finish("stop", usage(10, 5))],
});

/** A script that makes calls, numbered in order, with the ids given. */
export const calls = (...list: { id: string; name: string; args: unknown }[]): Script => ({
  steps: [
    ...list.flatMap(({ id, name, args }, index) => call(index, id, name, args)),
    ...finish("tool_calls", usage(10, 5)),
  ],
});
