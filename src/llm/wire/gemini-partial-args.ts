// Arguments that Vertex streams piece by piece: each piece names its place by a JSON path, and a string may come in
// several pieces. What a path asks for is built as it is asked for; a path that cannot be followed is an error, never a
// guess, for a call must not run with other arguments than the model wrote.

import { MAX_ARGUMENT_DEPTH } from "../../protocol/json-depth.js";
import { asRecord, asText, type JsonRecord } from "./json.js";

type Key = string | number;
type Node = JsonRecord | unknown[];

/** The arguments of one call while they come. */
export class PartialArgs {
  // Without a prototype, so that a key such as `__proto__` is a key like any other.
  readonly #root: JsonRecord = Object.create(null);
  #touched = false;
  /** The string that goes on with the next piece of the same path. */
  #openPath: string | undefined;

  get touched(): boolean {
    return this.#touched;
  }

  /** True while a string has been begun and its last piece has not come. */
  get isOpen(): boolean {
    return this.#openPath !== undefined;
  }

  /** @returns what is wrong with the piece, or undefined. */
  apply(piece: unknown): string | undefined {
    const part = asRecord(piece) ?? {};
    const path = asText(part.jsonPath);
    const keys = readPath(path);
    if (keys === undefined) return `a piece of arguments at "${path.slice(0, 100)}", which is no path`;
    const goesOn = this.#openPath === path;
    const last = keys.at(-1) as Key;
    const node = this.#walk(keys);
    if (node === undefined || !fits(node, last)) return `a piece of arguments at "${path}", where nothing can be put`;
    const value = readValue(part);
    // A piece may say no more than that its place exists.
    const isMore = goesOn && typeof value === "string";
    if (value !== undefined) put(node, last, isMore ? asText(at(node, last)) + value : value);
    this.#openPath = part.willContinue === true ? path : undefined;
    this.#touched = true;
    return undefined;
  }

  toJson(): string {
    return JSON.stringify(this.#root);
  }

  /** The object or list that holds the last key, with everything on the way to it. */
  #walk(keys: readonly Key[]): Node | undefined {
    let node: Node = this.#root;
    for (const [n, key] of keys.slice(0, -1).entries()) {
      if (!fits(node, key)) return undefined;
      let inner = at(node, key);
      if (inner === undefined) {
        inner = typeof keys[n + 1] === "number" ? [] : (Object.create(null) as JsonRecord);
        put(node, key, inner);
      }
      if (typeof inner !== "object" || inner === null) return undefined;
      node = inner as Node;
    }
    return node;
  }
}

/** A list grows by one at a time: an index far beyond its end would cost memory without end. */
const fits = (node: Node, key: Key): boolean =>
  Array.isArray(node) ? typeof key === "number" && key <= node.length : typeof key === "string";

const at = (node: Node, key: Key): unknown => (node as Record<Key, unknown>)[key];

function put(node: Node, key: Key, value: unknown): void {
  (node as Record<Key, unknown>)[key] = value;
}

function readValue(part: JsonRecord): unknown {
  if (part.stringValue !== undefined) return asText(part.stringValue);
  if (part.numberValue !== undefined) return part.numberValue;
  if (part.boolValue !== undefined) return part.boolValue;
  return part.nullValue === undefined ? undefined : null;
}

const STEP = /\.([^.[\]'"\s]+)|\[(\d{1,6})\]|\[(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\]/y;

/** `$.a.b[0]['c d']` as its keys; undefined for anything else. */
function readPath(path: string): Key[] | undefined {
  if (!path.startsWith("$") || path.length === 1) return undefined;
  const keys: Key[] = [];
  STEP.lastIndex = 1;
  while (STEP.lastIndex < path.length) {
    const step = STEP.exec(path);
    if (step === null) return undefined;
    const [, name, index, single, double] = step;
    if (index !== undefined) keys.push(Number(index));
    else keys.push(name ?? (single ?? double ?? "").replace(/\\(.)/g, "$1"));
  }
  return keys.length > MAX_ARGUMENT_DEPTH ? undefined : keys;
}
