// A refusal often comes before the body is there. A connection that is closed then, with bytes on it that nobody has
// read, is reset, and a client that is still sending never sees why. So the answer goes out at once and whole, and only
// its end waits: the rest of the body is read and thrown away first, within bounds.

import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { Clock } from "../clock.js";
import type { App } from "./context.js";
import { onceOver } from "./once-over.js";

/** So much is thrown away for the sake of one answer. */
const MAX_BYTES = 256 * 1024 ** 2;
/** For so long at most, also for a client that sends a byte now and then. */
const MAX_MS = 120_000;

const answered = new WeakSet<IncomingMessage>();

/** Whether the request has its answer while its body is still coming: it has a limit of its own here. */
export function isAnswered(raw: IncomingMessage): boolean {
  return answered.has(raw);
}

export function hasBody({ headers }: IncomingMessage): boolean {
  const { "content-length": length, "transfer-encoding": encoding } = headers;
  return encoding !== undefined || (length !== undefined && length !== "0");
}

function isComing(raw: IncomingMessage): boolean {
  return raw.complete === false && !raw.destroyed && hasBody(raw);
}

/** Lets every answer that is given before its request has come whole reach the client. */
export function answerBeforeBody(app: App, clock: Clock): void {
  app.addHook("onSend", async ({ raw }, reply, payload) => {
    if (typeof payload !== "string" || !isComing(raw)) return payload;
    reply.header("content-length", Buffer.byteLength(payload));
    return Readable.from(withEnd(payload, () => bodyIsOver(raw, reply.raw, clock)));
  });
}

/** Resolves when the answer may end: no more of the body comes, or none of it will be read. */
export async function bodyIsOver(raw: IncomingMessage, response: ServerResponse, clock: Clock): Promise<void> {
  if (!isComing(raw) || (await discardRest(raw, clock))) return;
  onceOver(response, () => raw.socket.destroySoon());
}

/** @returns false when more came, or it took longer, than anybody is waited for. */
export function discardRest(raw: IncomingMessage, clock: Clock): Promise<boolean> {
  answered.add(raw);
  return new Promise((resolve) => {
    let bytes = 0;
    const done = (isWhole: boolean) => {
      cancel();
      raw.off("data", count);
      resolve(isWhole);
    };
    const count = (chunk: Uint8Array) => {
      bytes += chunk.length;
      if (bytes > MAX_BYTES) done(false);
    };
    const cancel = clock.after(MAX_MS, () => done(false));
    raw.on("data", count);
    for (const event of ["end", "close"]) raw.once(event, () => done(true));
    // Whoever read it before may have stopped in the middle.
    raw.resume();
  });
}

async function* withEnd(payload: string, end: () => Promise<void>): AsyncGenerator<string, void, void> {
  yield payload;
  await end();
}
