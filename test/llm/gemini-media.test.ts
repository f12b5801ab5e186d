import { describe, expect, test } from "vitest";
import { imageUrl, inlineData, toolCall, toolCallOutput, userText } from "../../src/protocol/builders.js";
import type { CompleteMessage } from "../../src/protocol/message.js";
import { contentsOf } from "./gemini-support.js";
import { AT } from "./support.js";

const PNG = "data:image/png;base64,AAAA";
const INLINE = { inlineData: { mimeType: "image/png", data: "AAAA" } };
const base64 = (text: string) => Buffer.from(text).toString("base64");
const file = (mime_type: string, data: string, file_name?: string) =>
  inlineData(AT, { role: "user", mime_type, data, ...(file_name === undefined ? {} : { file_name }) });

describe("images and files", () => {
  const part = (message: CompleteMessage, vision = true) => contentsOf([message], { vision })[0]?.parts;

  test.each<[string, CompleteMessage, object[]]>([
    ["a data URL", imageUrl(AT, PNG), [INLINE]],
    [
      "a data URL of a type by another name",
      imageUrl(AT, PNG.replace("png", "JPG")),
      [{ inlineData: { mimeType: "image/jpeg", data: "AAAA" } }],
    ],
    [
      "an address",
      imageUrl(AT, "https://x.test/a.PNG?b=c.d"),
      [{ fileData: { mimeType: "image/png", fileUri: "https://x.test/a.PNG?b=c.d" } }],
    ],
    [
      "an address that tells no type",
      imageUrl(AT, "https://x.test/a"),
      [{ fileData: { mimeType: "image/jpeg", fileUri: "https://x.test/a" } }],
    ],
    [
      "an address of another scheme",
      imageUrl(AT, "file:///etc/passwd"),
      [{ text: "[an image left out: its address cannot be sent]" }],
    ],
    [
      "an image of a type that is refused",
      imageUrl(AT, PNG.replace("png", "gif")),
      [{ text: "[image (image/gif) left out: this model does not take it]" }],
    ],
    [
      "a drawing that is text",
      imageUrl(AT, "data:image/svg+xml,%3Csvg/%3E"),
      [{ text: "[file image]\n<svg/>\n[end of image]" }],
    ],
    [
      "a document",
      file("application/pdf; x=y", "JVBE", "a.pdf"),
      [{ text: "[file a.pdf]" }, { inlineData: { mimeType: "application/pdf", data: "JVBE" } }],
    ],
    ["a text file", file("text/csv", base64("a,b"), "t.csv"), [{ text: "[file t.csv]\na,b\n[end of t.csv]" }]],
    [
      "a binary file",
      file("application/zip", "AAAA", "z.zip"),
      [{ text: "[z.zip (application/zip) left out: this model does not take it]" }],
    ],
  ])("%s", (_, message, parts) => {
    expect(part(message)).toEqual(parts);
  });

  test("a model without vision is told of what it is not shown", () => {
    for (const message of [imageUrl(AT, PNG), imageUrl(AT, "https://x.test/a.png"), file("application/pdf", "JVBE")]) {
      expect(part(message, false)).toEqual([{ text: expect.stringContaining("left out") }]);
    }
    const sent = contentsOf(
      [
        userText(AT, "go"),
        toolCall(AT, { name: "f", arguments: "{}", tool_call_id: "a" }),
        toolCallOutput(AT, { output: "x", tool_call_id: "a", images: [PNG] }),
      ],
      { vision: false },
    );
    expect(JSON.stringify(sent)).not.toContain("AAAA");
    expect(sent.at(-1)?.parts.at(-1)).toEqual({ text: expect.stringContaining("left out") });
  });
});
