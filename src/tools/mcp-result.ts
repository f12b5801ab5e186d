// What a server answered to a call, as the text and the images a model reads. Nothing in it is trusted: what is not
// what it says it is, or is too much, is told in a line.

import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { nestsDeeper } from "../protocol/json-depth.js";
import { unreachable } from "../result.js";
import { MAX_ANSWER_DEPTH } from "./mcp-limits.js";
import { imageType, MAX_IMAGE_BYTES } from "./read-image.js";
import type { ToolOutput } from "./tool.js";

const MAX_IMAGES = 8;
/** All images of one result, in bytes. */
const MAX_IMAGES_BYTES = 2 * MAX_IMAGE_BYTES;
const MAX_BLOCKS = 1_000;
const MAX_INDENTED_CHARS = 16_384;
/** A server that says its data in a text too does so in one of the first. */
const MAX_COMPARED = 4;
const MAX_COMPARED_CHARS = 131_072;

/** The least that a result is; anything that stands in it is looked at piece by piece. */
export const mcpResultSchema = z.looseObject({
  content: z.array(z.unknown()).default([]),
  structuredContent: z.unknown().optional(),
  isError: z.unknown().optional(),
});
export type McpResult = z.output<typeof mcpResultSchema>;

export interface ReadResult {
  text: string;
  output: ToolOutput;
}

/** Makes a result readable. Never throws. */
export function readMcpResult(result: McpResult): ReadResult {
  const images = new Images();
  const { content, structuredContent, isError } = result;
  const lines = content.slice(0, MAX_BLOCKS).map((block) => linesOf(block, images));
  if (content.length > MAX_BLOCKS) lines.push(`[${content.length - MAX_BLOCKS} more pieces of content left out]`);
  const structured = structuredOf(structuredContent, content);
  if (structured !== undefined) lines.push(structured);
  return {
    text: lines.filter((line) => line !== "").join("\n"),
    output: {
      ...(isError === true ? { stop: "failed" as const } : {}),
      ...(images.urls.length === 0 ? {} : { images: images.urls }),
    },
  };
}

const blockSchema = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("text"), text: z.string() }),
  z.looseObject({ type: z.literal("image"), data: z.string() }),
  z.looseObject({ type: z.literal("audio"), data: z.string(), mimeType: z.string().catch("unknown type") }),
  z.looseObject({
    type: z.literal("resource"),
    resource: z.looseObject({
      uri: z.string().catch("without a URI"),
      mimeType: z.string().catch("unknown type"),
      text: z.string().optional().catch(undefined),
      blob: z.string().optional().catch(undefined),
    }),
  }),
  z.looseObject({
    type: z.literal("resource_link"),
    uri: z.string(),
    name: z.string().catch(""),
    description: z.string().catch(""),
  }),
]);

function linesOf(block: unknown, images: Images): string {
  const parsed = blockSchema.safeParse(block);
  if (!parsed.success) return `[content that cannot be read: ${kindOf(block)}]`;
  const { data } = parsed;
  switch (data.type) {
    case "text":
      return data.text;
    case "image":
      return images.take(data.data) ?? "";
    case "audio":
      return `[audio, ${short(data.mimeType)}, ${bytesIn(data.data)} bytes: not shown]`;
    case "resource": {
      const { uri, mimeType, text, blob } = data.resource;
      const head = `[resource ${short(uri)}, ${short(mimeType)}]`;
      if (text !== undefined) return `${head}\n${text}`;
      if (blob === undefined) return `${head} [empty]`;
      if (/^image\//i.test(mimeType)) return [head, images.take(blob) ?? ""].join(" ").trimEnd();
      return `${head} [${bytesIn(blob)} bytes: not shown]`;
    }
    case "resource_link": {
      const named = [data.name, data.description].filter((part) => part !== "").map(short);
      return `[resource link ${short(data.uri)}${named.length === 0 ? "" : `: ${named.join(", ")}`}]`;
    }
    default:
      return unreachable(data);
  }
}

/** Data that the texts do not already say. */
function structuredOf(structured: unknown, content: readonly unknown[]): string | undefined {
  if (structured === undefined || structured === null) return undefined;
  try {
    const compact = JSON.stringify(structured);
    // What is much longer than any output shows is not compared either.
    if (compact.length <= MAX_COMPARED_CHARS) {
      const texts = content.map(textIn).filter((text) => text.length <= 2 * MAX_COMPARED_CHARS);
      if (texts.slice(0, MAX_COMPARED).some((text) => isDeepStrictEqual(jsonIn(text), structured))) return undefined;
    }
    // Of what is long and deep, indentation would be the most.
    return compact.length > MAX_INDENTED_CHARS ? compact : JSON.stringify(structured, null, 2);
  } catch {
    // Nested so deeply that there is no stack for it.
    return "[structured content that cannot be read]";
  }
}

function textIn(block: unknown): string {
  const text = typeof block === "object" && block !== null && "text" in block ? block.text : undefined;
  return typeof text === "string" ? text : "";
}

function jsonIn(text: string): unknown {
  try {
    return nestsDeeper(text, MAX_ANSWER_DEPTH) ? undefined : JSON.parse(text);
  } catch {
    return undefined; // Plain text, as most is.
  }
}

/** The images of one result. */
class Images {
  readonly urls: string[] = [];
  #bytes = 0;

  /** @returns what to say in the place of an image that is not taken. */
  take(base64: string): string | undefined {
    const size = bytesIn(base64);
    if (size > MAX_IMAGE_BYTES) return `[an image of ${size} bytes, limit ${MAX_IMAGE_BYTES}: left out]`;
    if (this.urls.length === MAX_IMAGES || this.#bytes + size > MAX_IMAGES_BYTES)
      return "[one image too many: left out]";
    const bytes = Buffer.from(base64, "base64");
    // What it is, its first bytes say: a provider refuses the whole Request for one image that is not what it claims.
    const type = imageType(bytes);
    if (type === undefined) return "[an image that is not PNG, JPEG, GIF, WebP or BMP: left out]";
    this.#bytes += bytes.length;
    this.urls.push(`data:${type};base64,${bytes.toString("base64")}`);
    return undefined;
  }
}

const bytesIn = (base64: string): number =>
  Math.floor((base64.length * 3) / 4) - (/={1,2}$/.exec(base64)?.[0].length ?? 0);

const short = (text: string): string => (text.length > 300 ? `${text.slice(0, 300)}…` : text).replaceAll("\n", " ");

function kindOf(block: unknown): string {
  const type = typeof block === "object" && block !== null && "type" in block ? block.type : undefined;
  return typeof type === "string" ? JSON.stringify(short(type)) : "no type";
}
