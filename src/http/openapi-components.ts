// Tidies the components of the document: the maker writes each schema twice, for what comes in and what goes out, and
// all of them whether used or not. Twins become one, what nothing refers to goes, and the rest stands in order.

import { isDeepStrictEqual } from "node:util";
import type { OpenApiDocument } from "./openapi.js";

const PREFIX = "#/components/schemas/";

export function tidyComponents(document: OpenApiDocument): OpenApiDocument {
  const { schemas } = document.components;
  const names = new Map<string, string>();
  for (const [name, schema] of Object.entries(schemas)) {
    const twin = name.endsWith("Input") ? name.slice(0, -"Input".length) : name;
    const isTwin = twin !== name && (!(twin in schemas) || sameShape(schema, schemas[twin]));
    names.set(name, isTwin ? twin : name);
  }
  // What only comes in has no other form worth a name of its own.
  const used = reachable(document, names);
  for (const name of used) {
    const twin = name.slice(0, -"Input".length);
    if (name.endsWith("Input") && twin in schemas && !used.has(twin)) names.set(name, twin);
  }
  const renamed: Record<string, unknown> = {};
  for (const name of [...used].sort()) renamed[names.get(name) ?? name] = rename(schemas[name], names);
  return {
    ...document,
    paths: rename(document.paths, names) as OpenApiDocument["paths"],
    components: { ...document.components, schemas: renamed },
  };
}

function sameShape(input: unknown, output: unknown): boolean {
  return isDeepStrictEqual(bare(input), bare(output));
}

// Twins differ in the twins they refer to, and in that what goes out says that it has no other fields.
function bare(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(bare);
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value).map(([key, each]) =>
    key === "$ref" && typeof each === "string" ? [key, each.replace(/Input$/, "")] : [key, bare(each)],
  );
  return Object.fromEntries(entries.filter(([key, each]) => key !== "additionalProperties" || each !== false));
}

/** The names of the components, as made, that the paths lead to. A twin counts as the one it becomes. */
function reachable(document: OpenApiDocument, names: ReadonlyMap<string, string>): Set<string> {
  const found = new Set<string>();
  const visit = (value: unknown): void => {
    if (value === null || typeof value !== "object") return;
    for (const [key, each] of Object.entries(value)) {
      if (key !== "$ref" || typeof each !== "string" || !each.startsWith(PREFIX)) {
        visit(each);
        continue;
      }
      const made = each.slice(PREFIX.length);
      const name = names.get(made) ?? made;
      if (found.has(name)) continue;
      found.add(name);
      visit(document.components.schemas[name]);
    }
  };
  visit(document.paths);
  return found;
}

function rename(value: unknown, names: ReadonlyMap<string, string>): unknown {
  if (Array.isArray(value)) return value.map((each) => rename(each, names));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => {
      if (key !== "$ref" || typeof each !== "string" || !each.startsWith(PREFIX)) return [key, rename(each, names)];
      const made = each.slice(PREFIX.length);
      return [key, PREFIX + (names.get(made) ?? made)];
    }),
  );
}
