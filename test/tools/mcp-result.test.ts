import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { mcpResultSchema, readMcpResult } from "../../src/tools/mcp-result.js";

const read = (result: object) => readMcpResult(mcpResultSchema.parse(result));
const PNG = Buffer.from("\x89PNG\r\n\x1a\nrest", "latin1").toString("base64");

test("texts are put together, each on lines of its own", () => {
  expect(
    read({
      content: [
        { type: "text", text: "one" },
        { type: "text", text: "two" },
      ],
    }),
  ).toEqual({
    text: "one\ntwo",
    output: {},
  });
});

test("an error of the tool is a failed output with the tool's own words", () => {
  expect(read({ content: [{ type: "text", text: "no such file" }], isError: true })).toEqual({
    text: "no such file",
    output: { stop: "failed" },
  });
});

test("an image is an image, whatever type the server claims", () => {
  const { text, output } = read({ content: [{ type: "image", data: PNG, mimeType: "application/pdf" }] });
  expect(text).toBe("");
  expect(output.images).toEqual([`data:image/png;base64,${PNG}`]);
});

test("what claims to be an image and is none, or is too large or too many, is told and not handed on", () => {
  const fake = Buffer.from("<svg onload=alert(1)>").toString("base64");
  expect(read({ content: [{ type: "image", data: fake, mimeType: "image/png" }] })).toEqual({
    text: "[an image that is not PNG, JPEG, GIF, WebP or BMP: left out]",
    output: {},
  });
  const large = Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), Buffer.alloc(4_000_000)]).toString("base64");
  expect(read({ content: [{ type: "image", data: large, mimeType: "image/png" }] }).text).toMatch(
    /an image of 4000008 bytes/,
  );
  const many = read({
    content: Array.from({ length: 20 }, () => ({ type: "image", data: PNG, mimeType: "image/png" })),
  });
  expect(many.output.images).toHaveLength(8);
  expect(many.text).toMatch(/one image too many/);
});

test("audio, resources and links are told as text", () => {
  const { text, output } = read({
    content: [
      { type: "audio", data: PNG, mimeType: "audio/wav" },
      { type: "resource", resource: { uri: "file:///a.txt", mimeType: "text/plain", text: "hello" } },
      { type: "resource", resource: { uri: "file:///b.bin", mimeType: "application/zip", blob: PNG } },
      { type: "resource", resource: { uri: "file:///c.png", mimeType: "image/png", blob: PNG } },
      { type: "resource_link", uri: "file:///d", name: "d", description: "the fourth" },
    ],
  });
  expect(text.split("\n")).toEqual([
    "[audio, audio/wav, 12 bytes: not shown]",
    "[resource file:///a.txt, text/plain]",
    "hello",
    "[resource file:///b.bin, application/zip] [12 bytes: not shown]",
    "[resource file:///c.png, image/png]",
    "[resource link file:///d: d, the fourth]",
  ]);
  expect(output.images).toEqual([`data:image/png;base64,${PNG}`]);
});

describe("structured content", () => {
  const structuredContent = { a: 1, b: [true] };

  test("is shown where no text says the same", () => {
    expect(read({ structuredContent }).text).toBe(JSON.stringify(structuredContent, null, 2));
    expect(read({ content: [{ type: "text", text: "done" }], structuredContent }).text).toMatch(
      /^done\n\{\n {2}"a": 1,/,
    );
  });

  test("is not shown twice, however the text is laid out", () => {
    for (const text of [JSON.stringify(structuredContent), '{ "b": [true],\n "a": 1 }']) {
      expect(read({ content: [{ type: "text", text }], structuredContent }).text).toBe(text);
    }
  });

  test("that is nested beyond reason is told and throws nothing", () => {
    const nested = JSON.parse(`${"[".repeat(100_000)}${"]".repeat(100_000)}`);
    const { text } = read({ structuredContent: { nested } });
    // Newer engines write it without recursion.
    expect(text === "[structured content that cannot be read]" || text.startsWith('{"nested":[[[')).toBe(true);
  });
});

test("whatever stands in a result, reading it gives a text and throws nothing", () => {
  const block = fc.oneof(
    fc.jsonValue(),
    fc.record({ type: fc.constantFrom("text", "image", "audio", "resource", "resource_link", "video", "") }),
    fc.record({ type: fc.constantFrom("image", "audio"), data: fc.string(), mimeType: fc.jsonValue() }),
    fc.record({ type: fc.constant("resource"), resource: fc.jsonValue() }),
  );
  fc.assert(
    fc.property(fc.array(block), fc.jsonValue(), fc.jsonValue(), (content, structuredContent, isError) => {
      const { text, output } = read({ content, structuredContent, isError });
      expect(typeof text).toBe("string");
      for (const url of output.images ?? []) expect(url).toMatch(/^data:image\//);
    }),
  );
});

test("structured content that a text says already is told once, unless comparing them would take long", () => {
  const rows = (count: number) => Array.from({ length: count }, (_, n) => ({ name: `row ${n}` }));
  const both = (count: number, texts: number) => {
    const structuredContent = rows(count);
    const said = { type: "text", text: JSON.stringify(structuredContent, null, 2) };
    const other = { type: "text", text: "[]" };
    return read({ content: [...Array.from({ length: texts - 1 }, () => other), said], structuredContent }).text;
  };
  expect(both(100, 1).match(/row 99"/g)).toHaveLength(1);
  expect(both(100, 4).match(/row 99"/g)).toHaveLength(1);
  expect(both(100, 5).match(/row 99"/g)).toHaveLength(2);
  expect(both(20_000, 1).match(/row 99"/g)).toHaveLength(2);
});

test("long structured content is not mostly indentation", () => {
  const deep = (levels: number): unknown[] => (levels === 0 ? [] : [deep(levels - 1)]);
  expect(read({ structuredContent: [1, [2]] }).text).toBe("[\n  1,\n  [\n    2\n  ]\n]");
  const long = Array.from({ length: 1_000 }, () => deep(150));
  expect(read({ structuredContent: long }).text).toBe(JSON.stringify(long));
});
