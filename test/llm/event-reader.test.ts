import { expect, test } from "vitest";
import { EventReader } from "../../src/llm/http-sse.js";

test("F22, B3: a byte order mark is no part of the first event, and text is whole however the bytes are cut", () => {
  const bytes = Buffer.from('\uFEFFdata: {"a":"北🙂é"}\r\n\r\ndata: \uFEFFkept\n\n');
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const reader = new EventReader();
    const events = [...reader.push(bytes.subarray(0, cut)), ...reader.push(bytes.subarray(cut)), ...reader.end()];
    expect(events).toEqual([{ data: '{"a":"北🙂é"}' }, { data: "\uFEFFkept" }]);
  }
});
