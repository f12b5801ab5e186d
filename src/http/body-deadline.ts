// How long a request may take to come. Node has one limit for all requests of a server, and an upload of a gigabyte is
// not a prompt; so its limit is off, and each request with a body has a deadline of its own. A client that is late is
// answered on the bare socket, as Node would have it: its handler may still be waiting for the rest.

import type { IncomingMessage } from "node:http";
import type { Clock } from "../clock.js";
import { answerBadRequest, answerInTurn } from "./bad-request.js";
import type { App } from "./context.js";
import type { Recorder } from "./recorder.js";
import { hasBody, isAnswered } from "./rest-of-body.js";

/** A client may take this long to send its request; without a limit a trickle holds a connection for ever. */
const REQUEST_TIMEOUT_MS = 120_000;

/** Ends every request whose body does not come in time, also one that nobody reads. */
export function limitBodies(app: App, clock: Clock, recorder: Recorder): void {
  app.addHook("onRequest", async ({ raw, routeOptions }) => {
    if (!hasBody(raw)) return;
    const limitMs = routeOptions.config.bodyTimeoutMs ?? REQUEST_TIMEOUT_MS;
    const cancel = clock.after(limitMs, () => endLate(raw, { clock, recorder }));
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
  { clock, recorder, silenceMs }: { clock: Clock; recorder: Recorder; silenceMs: number },
): AsyncGenerator<Uint8Array, void, void> {
  const watch = () => clock.after(silenceMs, () => endLate(raw, { clock, recorder }));
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

function endLate(raw: IncomingMessage, means: { clock: Clock; recorder: Recorder }): void {
  if (raw.complete || isAnswered(raw)) return;
  const error = Object.assign(new Error("the body is late"), { code: "ERR_HTTP_REQUEST_TIMEOUT" });
  // A request that was refused at once has its answer: another would be one to nothing.
  if (answerInTurn(raw.socket) !== undefined) answerBadRequest(error, raw.socket, means);
  raw.socket.destroySoon();
}
