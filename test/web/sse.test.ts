import fc from "fast-check";
import { expect, test } from "vitest";
import type { StreamEvent } from "../../src/web/types.d.ts";
import { load } from "./modules.js";

const { sseParser, eventsOf } = await load("sse.js");

const parsed = (...pieces: string[]): StreamEvent[] => {
  const parse = sseParser();
  return pieces.flatMap((piece) => parse(piece));
};

test.each([
  ["an event without a name", "id: 1-1\ndata: {}\n\n", [{ event: "", data: "{}", id: "1-1" }]],
  ["a named event without an id", "event: server_event\ndata: x\n\n", [{ event: "server_event", data: "x" }]],
  ["a heartbeat is no event", ": ping\n\ndata: x\n\n", [{ event: "", data: "x" }]],
  ["several data lines are joined", "data: a\ndata\ndata:b\n\n", [{ event: "", data: "a\n\nb" }]],
  ["one space after the colon is dropped, no more", "data:  a\n\n", [{ event: "", data: " a" }]],
  [
    "CRLF ends a line once",
    "data: a\r\n\r\ndata: b\r\n\r\n",
    [
      { event: "", data: "a" },
      { event: "", data: "b" },
    ],
  ],
  [
    "CR ends a line",
    "data: a\r\rdata: b\r\r",
    [
      { event: "", data: "a" },
      { event: "", data: "b" },
    ],
  ],
  ["a BOM comes off", "\uFEFFdata: a\n\n", [{ event: "", data: "a" }]],
  [
    "an event without data is none, and leaves no name behind",
    "event: x\nid: 1\n\ndata: a\n\n",
    [{ event: "", data: "a" }],
  ],
  ["retry and unknown fields are skipped", "retry: 1000\nfoo: bar\ndata: a\n\n", [{ event: "", data: "a" }]],
  ["an id with NUL is ignored", "id: a\0b\ndata: a\n\n", [{ event: "", data: "a" }]],
  ["what has not ended is dropped", "data: a\n\ndata: half", [{ event: "", data: "a" }]],
])("F22: %s", (_claim, text, events) => {
  expect(parsed(text)).toEqual(events);
});

const line = fc.oneof(
  fc.constantFrom("data: a", "data:b", ": ping", "event: server_event", "id: 7-1", "retry: 5", "", ""),
  fc.string({ unit: "grapheme", maxLength: 8 }).map((text) => `data: ${text.replace(/[\r\n]/g, "")}`),
);

test("B3: no cut between characters or inside one changes what is parsed", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(line, fc.constantFrom("\n", "\r\n", "\r")), { maxLength: 12 }),
      fc.array(fc.nat(400), { maxLength: 8 }),
      async (lines, cuts) => {
        const bytes = new TextEncoder().encode(lines.map(([text, end]) => text + end).join(""));
        const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
        const pieces = [0, ...places].map((from, index) => bytes.slice(from, places[index] ?? bytes.length));
        const body = new ReadableStream<Uint8Array>({
          start(controller) {
            for (const piece of pieces) controller.enqueue(piece);
            controller.close();
          },
        });
        const events: StreamEvent[] = [];
        for await (const some of eventsOf(body, () => {})) events.push(...some);
        expect(events).toEqual(parsed(new TextDecoder().decode(bytes)));
      },
    ),
    { numRuns: 300 },
  );
});

test("B11: a line of many pieces is searched once, not once for each piece", () => {
  let looked = 0;
  const piece = "x".repeat(1000);
  const parse = sseParser();
  parse("data: ");
  const find = String.prototype.indexOf;
  // Counts the characters that indexOf has before it, whatever the line is made of.
  String.prototype.indexOf = function (this: string, wanted: string, from = 0) {
    looked += this.length - from;
    return find.call(this, wanted, from);
  };
  try {
    for (let n = 0; n < 500; n += 1) parse(piece);
  } finally {
    String.prototype.indexOf = find;
  }
  expect(looked).toBeLessThan(4 * 500 * 1000);
});
