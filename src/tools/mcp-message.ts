// What a server sends, looked at as bytes before it is parsed: `JSON.parse` takes any depth and any number of values in
// one go, and what works through the result holds the process for seconds more. An answer that is too much becomes an
// error in its place, so the call fails and the connection goes on.

import {
  MAX_ANSWER_DEPTH,
  MAX_ANSWER_VALUES,
  MAX_LIST_BYTES,
  MAX_LIST_VALUES,
  MAX_MESSAGE_BYTES,
} from "./mcp-limits.js";

/** Too short for anything to be too much. */
const SMALL_BYTES = MAX_ANSWER_DEPTH;
/** Requests whose answers are told apart: those after them may still be out when this many more were made. */
const MAX_AWAITED = 4_096;
const INVALID_REQUEST = -32_600;

export type Admission =
  | { kind: "fine" }
  /** To be read in the place of what came. */
  | { kind: "instead"; json: Buffer }
  /** Too much, and nobody's answer. */
  | { kind: "breach"; reason: string };

interface Size {
  bytes: number;
  /** Not fewer than there are. */
  values: number;
  depth: number;
}

const ANSWER: Size = { bytes: MAX_MESSAGE_BYTES, values: MAX_ANSWER_VALUES, depth: MAX_ANSWER_DEPTH };
/** One tool that nests too deep is left out of its list, so there the values are what counts. */
const LIST: Size = { bytes: MAX_LIST_BYTES, values: MAX_LIST_VALUES, depth: MAX_LIST_VALUES };
const OTHER: Size = { ...LIST, depth: MAX_ANSWER_DEPTH };

/** Judges the messages of one connection. */
export class MessageGuard {
  readonly #awaited = new Map<number, "call" | "list">();
  /** What is left for the pages of the list that is being asked for. */
  #list = LIST;

  /** To be told of every message that goes out. */
  sent({ method, id }: { method?: unknown; id?: unknown }): void {
    if (typeof id !== "number") return;
    if (method === "tools/call") this.#awaited.set(id, "call");
    else if (method === "tools/list") this.#awaited.set(id, "list");
    const [oldest] = this.#awaited.keys();
    if (oldest !== undefined && this.#awaited.size > MAX_AWAITED) this.#awaited.delete(oldest);
  }

  /** The pages that come from here on are those of one list. */
  beginList(): void {
    this.#list = LIST;
  }

  admit(json: Buffer): Admission {
    if (json.length <= SMALL_BYTES) return { kind: "fine" };
    const { size, id } = shapeOf(json);
    const answers = id === undefined ? undefined : this.#awaited.get(id);
    const limits = answers === "call" ? ANSWER : answers === "list" ? this.#list : OTHER;
    const excess = excessOf(size, limits);
    if (answers === "list")
      this.#list = { ...LIST, bytes: limits.bytes - size.bytes, values: limits.values - size.values };
    if (excess === undefined) return { kind: "fine" };
    if (id === undefined) return { kind: "breach", reason: `it sent a message that ${excess}` };
    const message = `the answer ${excess}: it was not read`;
    const error = { jsonrpc: "2.0", id, error: { code: INVALID_REQUEST, message } };
    return { kind: "instead", json: Buffer.from(JSON.stringify(error)) };
  }
}

function excessOf({ bytes, values, depth }: Size, limits: Size): string | undefined {
  if (depth > limits.depth) return `nests ${depth} levels deep, limit ${limits.depth}`;
  if (values > limits.values) return `holds ${values} values, limit ${Math.max(0, limits.values)}`;
  if (bytes > limits.bytes) return `is ${bytes} bytes, limit ${Math.max(0, limits.bytes)}`;
  return undefined;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;

/**
 * For bytes that are no JSON it is a guess; those are not parsed to an end either.
 * @returns no `id` where it is not plain to see, which no honest writer brings about.
 */
function shapeOf(json: Buffer): { size: Size; id?: number } {
  let depth = 0;
  let deepest = 0;
  let values = 1;
  let keyFrom = 0;
  let keyTo = 0;
  let idAt: number | undefined;
  let isPlain = true;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at] as number;
    if (byte === QUOTE) {
      keyFrom = at + 1;
      at = endOfString(json, keyFrom);
      keyTo = at;
    } else if ((byte | 0x20) === 0x7b) {
      // `[` and `{`, `]` and `}` differ in one bit.
      depth += 1;
      values += 1;
      if (depth > deepest) deepest = depth;
    } else if ((byte | 0x20) === 0x7d) depth -= 1;
    else if (byte === COMMA) values += 1;
    else if (byte === COLON && depth === 1) {
      const key = latin1(json, keyFrom, keyTo);
      // An escape could spell the name a second time.
      if (key.includes("\\") || (key === "id" && idAt !== undefined)) isPlain = false;
      if (key === "id") idAt = at + 1;
    }
  }
  const id = isPlain && idAt !== undefined ? numberAt(json, idAt) : undefined;
  return { size: { bytes: json.length, values, depth: deepest }, ...(id === undefined ? {} : { id }) };
}

/** The index of the quote that ends the string whose first character is at `at`. */
function endOfString(json: Buffer, at: number): number {
  let next = at;
  while (next < json.length && json[next] !== QUOTE) next += json[next] === BACKSLASH ? 2 : 1;
  return next;
}

function numberAt(json: Buffer, at: number): number | undefined {
  const digits = /^\s{0,8}(\d{1,15})\s{0,8}[,}]/.exec(latin1(json, at, at + 32))?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** As much of it as is looked at. */
const latin1 = (json: Buffer, from: number, to: number): string =>
  json.toString("latin1", from, Math.min(to, from + 32));
