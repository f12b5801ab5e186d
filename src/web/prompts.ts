// A prompt as it is written, and as the server has it.

import type { Prompt } from "../client/index.js";
import type { Attachment } from "./state.js";
import { newKey } from "./tab-locks.js";

export interface Written {
  readonly text: string;
  readonly files: readonly Attachment[];
}

/** Nothing where there is nothing to send. */
export function promptOf({ text, files }: Written): Prompt | undefined {
  const isBlank = text.trim() === "";
  if (files.length === 0) return isBlank ? undefined : text;
  return [
    ...(isBlank ? [] : [{ type: "text" as const, text }]),
    ...files.map(({ name, type, dataUrl }) =>
      type.startsWith("image/")
        ? { type: "image_url" as const, imageUrl: dataUrl }
        : { type: "file" as const, fileName: name, dataUrl },
    ),
  ];
}

/** What was sent, to be written on: the texts as one, pictures and files as they went along. */
export function writtenOf(input: Prompt): Written {
  if (typeof input === "string") return { text: input, files: [] };
  return {
    text: input.flatMap((part) => (part.type === "text" ? part.text : [])).join("\n"),
    files: input.flatMap((part) => {
      if (part.type === "text") return [];
      return part.type === "file" ? fileOf(part.dataUrl, part.fileName) : pictureOf(part.imageUrl);
    }),
  };
}

/** The server keeps no name of a picture. */
function pictureOf(url: string): Attachment {
  const kind = /^data:image\/(\w+)/.exec(url)?.[1];
  return { ...fileOf(url, kind === undefined ? "image" : `image.${kind}`), type: `image/${kind ?? "*"}` };
}

function fileOf(dataUrl: string, name: string): Attachment {
  const kind = /^data:([^;,]+)/.exec(dataUrl)?.[1] ?? "image/";
  // What went along as a file does so again.
  const type = kind.startsWith("image/") ? "application/octet-stream" : kind;
  const data = dataUrl.startsWith("data:") ? dataUrl.slice(dataUrl.indexOf(",") + 1) : "";
  return { key: newKey(), name, type, bytes: Math.floor((data.length * 3) / 4), dataUrl };
}

/** One text behind another. */
export const bothTexts = (...texts: readonly string[]): string =>
  texts.filter((each) => each.trim() !== "").join("\n\n");

/** What was written on, or taken back, while a prompt was on its way. */
export function restOf(written: Written, sent: Written): Written {
  const { text, files } = written;
  return {
    text: text.startsWith(sent.text) ? text.slice(sent.text.length).replace(/^\n+/, "") : text,
    files: files.filter((each) => !sent.files.includes(each)),
  };
}
