// An answer without end: it is cut off before it fills the memory.

import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { ManualClock } from "./manual-clock.js";
import { delta, expectDiscipline, sse } from "./support.js";
import { drain, start, stopOf, streamHead, Upstream } from "./upstream.js";

/** Sends the same events until the socket is gone. */
function forever(response: ServerResponse, events: string): void {
  response.writeHead(200, streamHead);
  const bytes = Buffer.from(events);
  const more = () => {
    while (!response.destroyed && response.write(bytes));
    response.once("drain", more);
  };
  more();
}

const LONG = "x".repeat(32 * 1024);

test.each([
  ["text", sse(delta({ content: LONG })), /longer than 33554432 characters$/],
  [
    "segments",
    sse(delta({ reasoning_content: "hm" })) + sse(delta({ content: "so" })),
    /has more than 10000 segments$/,
  ],
  ["what nobody reads", sse(delta({ pad: LONG })), /longer than 134217728 characters of events$/],
])(
  "%s without end ends the answer as malformed, and its socket is closed",
  async (_, events, message) => {
    const upstream = await Upstream.start((response) => forever(response, events));
    const clock = new ManualClock();
    const { messages, outcome } = await drain(start(upstream, clock).stream);
    expectDiscipline(messages);
    expect(outcome).toMatchObject({ status: "malformed", error: { kind: "malformed" } });
    expect(outcome.error?.message).toMatch(message);
    if (messages.length > 0) expect(stopOf(messages)).toBe("malformed");
    await clock.waiting();
    clock.advance(1000);
    await upstream.noSockets();
  },
  60_000,
);
