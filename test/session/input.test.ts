import { expect, test } from "vitest";
import { promptMessages } from "../../src/session/input.js";

const AT = "2026-01-02T03:04:05.000Z";
const PDF = `data:application/pdf;base64,${Buffer.from([0x25, 0x50, 0x44, 0x46, 0, 0xff]).toString("base64")}`;
const TEXT = `data:text/csv;base64,${Buffer.from("a;b\n1;é").toString("base64")}`;
const PNG = "data:image/png;base64,iVBORw0KGgo=";

const file = (dataUrl: string) => [{ type: "file" as const, fileName: "it", dataUrl }];

test.each([
  ["a file that is text goes to every model", TEXT, { vision: false, documents: [] }, "inline_data"],
  [
    "a document goes where the protocol takes it",
    PDF,
    { vision: false, documents: ["application/pdf"] },
    "inline_data",
  ],
  ["a file that is an image becomes one", PNG, { vision: true, documents: [] }, "image_url"],
])("%s", (_name, dataUrl, limits, type) => {
  const made = promptMessages(file(dataUrl), AT, limits);
  expect(made.ok && made.value.map((message) => (message.payload as { type: string }).type)).toEqual([type]);
});

test.each([
  ["a document where the protocol takes none", PDF, "file_not_supported"],
  ["an image where the model takes none", PNG, "images_not_supported"],
  ["what is no data URL", "https://example.org/x", "file_not_supported"],
])("%s is refused by name", (_name, dataUrl, code) => {
  expect(promptMessages(file(dataUrl), AT, { vision: false, documents: [] })).toMatchObject({ ok: false, code });
});
