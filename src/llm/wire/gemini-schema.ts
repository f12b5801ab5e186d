// A tool's JSON Schema as `parametersJsonSchema` takes it. The older `parameters` is a subset of OpenAPI whose parser
// refuses the whole Request for one keyword that it does not know; fitting a schema into it loses unions, constants
// and references, and what remains is refused by some models again. `parametersJsonSchema` takes the schema as it is,
// but for references: those are followed here, because they are resolved against another root there, and one that leads
// back to itself or nowhere is refused.

import { asRecord, type JsonRecord } from "./json.js";

/** Objects that one schema may grow to: references into each other multiply. */
const MAX_NODES = 2000;
const MAX_DEPTH = 32;
const HEADERS = new Set(["$schema", "$id", "$defs", "definitions", "$comment", "$anchor"]);
/** Keywords whose value is a schema for each name of the caller's: there a name such as `$id` is no keyword. */
const NAMED = new Set(["properties", "patternProperties", "dependentSchemas"]);
/** Keywords whose value is data. */
const DATA = new Set(["const", "default", "enum", "examples", "example", "required"]);

/** @returns undefined for a tool that takes nothing: an object without properties is refused by some models. */
export function geminiParameters(schema: JsonRecord | undefined): JsonRecord | undefined {
  if (schema === undefined) return undefined;
  const whole = new Inliner(schema).schema(schema, [], 0);
  const takesNamed = Object.keys(asRecord(whole.properties) ?? {}).length > 0;
  const takesOthers = whole.additionalProperties !== undefined && whole.additionalProperties !== false;
  if (!takesNamed && !takesOthers && !hasAlternatives(whole)) return undefined;
  if (!takesNamed) delete whole.properties;
  return { ...whole, type: "object" };
}

const hasAlternatives = (schema: JsonRecord): boolean =>
  ["anyOf", "oneOf", "allOf", "patternProperties"].some((keyword) => schema[keyword] !== undefined);

class Inliner {
  readonly #root: JsonRecord;
  #nodes = 0;

  constructor(root: JsonRecord) {
    this.#root = root;
  }

  /** @param open the references being followed; one that comes again would never end. */
  schema(schema: JsonRecord, open: readonly string[], depth: number): JsonRecord {
    this.#nodes += 1;
    if (this.#nodes > MAX_NODES || depth > MAX_DEPTH) return {};
    const reference = schema.$ref;
    if (typeof reference !== "string") return this.#members(schema, open, depth);
    const { $ref: _, ...beside } = schema;
    const target = open.includes(reference) ? undefined : this.#resolve(reference);
    const own = this.#members(beside, open, depth);
    // Anything is allowed at a place whose schema cannot be told; the tool checks its arguments itself.
    return target === undefined ? own : { ...this.schema(target, [...open, reference], depth + 1), ...own };
  }

  #members(schema: JsonRecord, open: readonly string[], depth: number): JsonRecord {
    const members: JsonRecord = {};
    for (const [keyword, value] of Object.entries(schema)) {
      if (HEADERS.has(keyword)) continue;
      if (DATA.has(keyword)) members[keyword] = value;
      else if (NAMED.has(keyword)) members[keyword] = this.#named(asRecord(value) ?? {}, open, depth);
      else members[keyword] = this.#value(value, open, depth);
    }
    return members;
  }

  #named(schemas: JsonRecord, open: readonly string[], depth: number): JsonRecord {
    // `true` is a schema too, and one that the provider does not take for a property.
    return Object.fromEntries(
      Object.entries(schemas).map(([name, value]) => [name, this.schema(asRecord(value) ?? {}, open, depth + 1)]),
    );
  }

  #value(value: unknown, open: readonly string[], depth: number): unknown {
    if (Array.isArray(value)) return value.map((each) => this.#value(each, open, depth));
    const record = asRecord(value);
    return record === undefined ? value : this.schema(record, open, depth + 1);
  }

  /** What a pointer into this same document names; nothing is fetched. */
  #resolve(reference: string): JsonRecord | undefined {
    if (reference === "#") return this.#root;
    if (!reference.startsWith("#/")) return undefined;
    let node: unknown = this.#root;
    for (const step of reference.slice(2).split("/")) {
      const key = decode(step).replaceAll("~1", "/").replaceAll("~0", "~");
      const list = Array.isArray(node) ? node : undefined;
      const record = asRecord(node);
      node = list?.[Number(key)] ?? (record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined);
    }
    return asRecord(node);
  }
}

function decode(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step; // a stray % sign is part of the name
  }
}
