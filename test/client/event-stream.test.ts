import fc from "fast-check";
import { expect, test } from "vitest";
import { channelEventOf, eventsOf, type RawEvent } from "../../src/client/event-stream.js";

async function read(pieces: readonly Uint8Array[]): Promise<RawEvent[]> {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece);
      controller.close();
    },
  });
  const found: RawEvent[] = [];
  for await (const events of eventsOf(body)) found.push(...events);
  return found;
}

const line = fc.oneof(
  fc.constantFrom("data: a", "data:b", ": ping", "event: server_event", "id: 7-1", "retry: 5", "", ""),
  fc.string({ unit: "grapheme", maxLength: 8 }).map((text) => `data: ${text.replace(/[\r\n]/g, "")}`),
);

test("no cut between characters or inside one changes what is read", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(line, fc.constantFrom("\n", "\r\n")), { maxLength: 12 }),
      fc.array(fc.nat(400), { maxLength: 8 }),
      async (lines, cuts) => {
        const bytes = new TextEncoder().encode(lines.map(([text, end]) => text + end).join(""));
        const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
        const pieces = [0, ...places].map((from, index) => bytes.slice(from, places[index] ?? bytes.length));
        expect(await read(pieces)).toEqual(await read([bytes]));
      },
    ),
    { numRuns: 300 },
  );
});

test("what has not ended when the body does is dropped", async () => {
  const bytes = new TextEncoder().encode("data: a\n\nid: 1-2\ndata: half");
  expect(await read([bytes])).toMatchObject([{ data: "a" }]);
});

test.each([
  ["a message", { id: "1-1", data: '{"type":"event_msg","payload":{}}' }, "message"],
  ["a message by its default name", { event: "message", data: '{"type":"event_msg","payload":{}}' }, "message"],
  ["a server event", { event: "server_event", data: '{"type":"shutdown","retryMs":1}' }, "server_event"],
  [
    "a server event of a type that is not known here",
    { event: "server_event", data: '{"type":"new"}' },
    "server_event",
  ],
])("%s is told by its name and shape", (_, raw, kind) => {
  expect(channelEventOf(raw)).toMatchObject({ kind });
});

test.each([
  ["half a message", { data: '{"type":"event_msg"' }],
  ["a proxy's page", { data: "<h1>Bad gateway</h1>" }],
  ["a message without payload", { data: '{"type":"event_msg"}' }],
  ["null", { data: "null" }],
  ["a server event without a type", { event: "server_event", data: "{}" }],
])("%s is unreadable", (_, raw) => {
  expect(channelEventOf(raw)).toBe("unreadable");
});

test("an event of another name is nobody's", () => {
  expect(channelEventOf({ event: "welcome", data: "{}" })).toBeUndefined();
});
