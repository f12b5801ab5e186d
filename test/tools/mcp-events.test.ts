// What is taken for the data of an event here is what the parser behind reads.

import { createParser } from "eventsource-parser";
import fc from "fast-check";
import { expect, test } from "vitest";
import { dataOf, EventCutter } from "../../src/tools/mcp-events.js";

const line = fc.oneof(
  fc.constantFrom(
    "",
    "data",
    "data:",
    "data: ",
    "data:x",
    "data: {",
    "id: 1",
    "event: message",
    ": note",
    "datas: y",
    "retry: 5",
  ),
  fc.stringMatching(/^[data:ié \ufeff]{0,8}$/),
);
const streams = fc
  .tuple(fc.boolean(), fc.array(fc.tuple(line, fc.constantFrom("\n", "\r\n"))))
  .map(([bom, lines]) => `${bom ? "\ufeff" : ""}${lines.map((parts) => parts.join("")).join("")}\n\n`);

test("whatever the lines and wherever the chunks are cut, events and their data are those of the parser", () => {
  fc.assert(
    fc.property(streams, fc.array(fc.nat()), (text, cuts) => {
      const bytes = Buffer.from(text);
      const read: string[] = [];
      createParser({ onEvent: ({ data }) => void read.push(data) }).feed(new TextDecoder().decode(bytes));

      const places = [0, ...cuts.map((cut) => cut % bytes.length).sort((a, b) => a - b), bytes.length];
      const cutter = new EventCutter();
      const events = places.slice(1).flatMap((end, index) => [...cutter.cut(bytes.subarray(places[index], end))]);
      expect(Buffer.concat([...events.map(({ event }) => event), cutter.rest()])).toEqual(bytes);
      const data = events.map(({ event }) => String(dataOf(event)));
      expect(data.filter((one) => one !== "")).toEqual(read.filter((one) => one !== ""));
    }),
    { numRuns: 500 },
  );
});

test("a carriage return that ends no line is not guessed at", () => {
  for (const text of ['id: "\rdata: [\n\n', "data: a\r\r\n\n", "data: a\r"]) {
    expect(dataOf(Buffer.from(text))).toBe("unclear");
  }
  expect(String(dataOf(Buffer.from("data: a\r\ndata:b\r\n\r\n")))).toBe("a\nb");
});

test("the lines of an event are counted over chunks", () => {
  const cutter = new EventCutter();
  expect([...cutter.cut(Buffer.from(": a\n: b\n"))]).toEqual([]);
  expect(cutter.lines).toBe(2);
  expect([...cutter.cut(Buffer.from("\n"))]).toMatchObject([{ lines: 3 }]);
  expect(cutter.lines).toBe(0);
});
