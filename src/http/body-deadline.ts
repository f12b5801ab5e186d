// How long a request may take to come. Node has one limit for all requests of a server, and an upload of a gigabyte is
// not a prompt; so its limit is off, and each request with a body has a deadline of its own. A client that is late is
// answered on the bare socket, as Node would have it: its handler may still be waiting for the rest.

import type { IncomingMessage } from "node:http";
import type { Clock } from "../clock.js";
import { answerBadRequest } from "./bad-request.js";
import type { App } from "./context.js";

/** A client may take this long to send its request; without a limit a trickle holds a connection for ever. */
const REQUEST_TIMEOUT_MS = 120_000;

/** Ends every request whose body does not come in time, also one that nobody reads. */
export function limitBodies(app: App, clock: Clock, newId: () => string): void {
  app.addHook("onRequest", async ({ raw, routeOptions }) => {
    const { "content-length": length, "transfer-encoding": encoding } = raw.headers;
    if (encoding === undefined && (length === undefined || length === "0")) return;
    const limitMs = routeOptions.config.bodyTimeoutMs ?? REQUEST_TIMEOUT_MS;
    const cancel = clock.after(limitMs, () => endLate(raw, newId()));
    raw.once("close", cancel);
  });
}

/**
 * The body of a request, as it comes. Ends the request when nothing comes for `silenceMs`. The request stays open when
 * the reader stops early: what it would answer must still reach a client that goes on sending.
 * @throws the connection's own error when the client goes away.
 */
export async function* bodyOf(
  raw: IncomingMessage,
  { clock, newId, silenceMs }: { clock: Clock; newId: () => string; silenceMs: number },
): AsyncGenerator<Uint8Array, void, void> {
  const watch = () => clock.after(silenceMs, () => endLate(raw, newId()));
  let cancel = watch();
  try {
    for await (const chunk of raw.iterator({ destroyOnReturn: false })) {
      cancel();
      yield chunk as Uint8Array;
      cancel = watch();
    }
  } finally {
    cancel();
  }
}

function endLate(raw: IncomingMessage, requestId: string): void {
  if (raw.complete) return;
  answerBadRequest(
    Object.assign(new Error("the body is late"), { code: "ERR_HTTP_REQUEST_TIMEOUT" }),
    raw.socket,
    requestId,
  );
  raw.socket.destroySoon();
}
