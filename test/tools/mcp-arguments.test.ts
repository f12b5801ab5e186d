// Schemas that servers send, good and bad: what does not fit is told, what cannot be told is left to the server, and none
// of them holds the process.

import { expect, test } from "vitest";
import { argumentCheck } from "../../src/tools/mcp-arguments.js";
import { timeBoxed } from "../../src/tools/time-box.js";

const object = (properties: object, more: object = {}) => ({ type: "object", properties, ...more });
const problems = (schema: object, args: object) => argumentCheck(schema as Record<string, unknown>)({ ...args });

test("arguments that fit have no problems, and each that does not is named with its place", () => {
  const check = argumentCheck(
    object(
      {
        name: { type: "string", minLength: 2 },
        unit: { enum: ["m", "ft"] },
        kind: { const: "x" },
        points: { type: "array", items: { $ref: "#/$defs/point" } },
      },
      { required: ["name"], additionalProperties: false, $defs: { point: object({ "a/b": { type: "integer" } }) } },
    ),
  );
  expect(check({ name: "ab", unit: "ft", points: [{ "a/b": 1 }, {}] })).toEqual([]);
  expect(check({})).toEqual(["arguments: must have required property 'name'"]);
  const bad = { name: "a", unit: "mile", kind: "y", points: [{}, { "a/b": 1.5 }], more: 1 };
  expect(check(bad)).toEqual([
    'arguments: must NOT have additional properties, and has "more"',
    "name: must NOT have fewer than 2 characters",
    'unit: must be one of ["m","ft"]',
    'kind: must be "x"',
    "points.1.a/b: must be integer",
  ]);
  expect(check({ name: "ab" }), "after one that failed").toEqual([]);
});

test("what is told is bounded", () => {
  const told = problems(object({ list: { items: { enum: ["x".repeat(1_000)] } } }), { list: Array(1_000).fill(1) });
  expect(told).toHaveLength(9);
  expect(told.at(-1)).toBe("and 992 more");
  expect(Math.max(...told.map(({ length }) => length))).toBeLessThanOrEqual(201);
});

const tuple = object({ pair: { type: "array", items: [{ type: "string" }, { type: "number" }] } });
test("a tuple is read in the dialect that the schema names", () => {
  const named = { $schema: "http://json-schema.org/draft-07/schema#", ...tuple };
  expect(problems(named, { pair: [1, 1] })).toEqual(["pair.0: must be string"]);
  expect(problems(named, { pair: ["a", 1] })).toEqual([]);
  expect(problems(object({ pair: { prefixItems: [{ type: "string" }] } }), { pair: [1] })).toHaveLength(1);
});

test("names that every object inherits are names like others", () => {
  const schema = object({ constructor: { type: "string" }, toString: { type: "string" } }, { required: ["valueOf"] });
  expect(problems(schema, {})).toEqual(["arguments: must have required property 'valueOf'"]);
  expect(problems(schema, { valueOf: 1 })).toEqual([]);
});

test.each<[string, object, object]>([
  ["a format", object({ a: { type: "string", format: "email" } }), { a: "no address" }],
  ["a pattern of another dialect", object({ a: { pattern: "\\A(?i)x\\Z" } }), { a: "X" }],
  ["a word that is none of JSON Schema's", object({ a: { "x-kind": 5, optional: true } }), {}],
  ["a null that is allowed", object({ a: { type: "string", nullable: true } }), { a: null }],
  ["a fraction that binary has none for", object({ a: { type: "number", multipleOf: 0.01 } }), { a: 4.35 }],
  ["a tuple without a dialect", tuple, { pair: [1, 1] }],
  ["a reference that leads nowhere", object({ a: { $ref: "#/$defs/none" } }), { a: 1 }],
  ["a reference to elsewhere", object({ a: { $ref: "http://127.0.0.1:1/schema" } }), { a: 1 }],
  [
    "a schema that refers to itself for ever",
    { type: "object", $ref: "#/$defs/x", $defs: { x: { $ref: "#/$defs/x" } } },
    {},
  ],
  ["one that does so when it is used", { type: "object", $dynamicRef: "#x" }, {}],
  ["properties that are none", { type: "object", properties: "nope", required: 7 }, {}],
  ["a type that is none", object({ a: { type: "float" } }), { a: "x" }],
  ["one that would answer with a promise", { $async: true, ...object({ a: { type: "string" } }) }, { a: 1 }],
  ["a schema with the name of that of schemas", { $id: "http://json-schema.org/draft-07/schema#", type: "object" }, {}],
])("%s is left to the server", (_what, schema, args) => {
  expect(problems(schema, args)).toEqual([]);
});

const doubling = Object.fromEntries(
  Array.from({ length: 60 }, (_, n) => {
    const next = { $ref: `#/$defs/d${n + 1}` };
    return [`d${n}`, { anyOf: [next, { allOf: [next] }] }];
  }),
);
test.each<[string, object, object]>([
  ["a pattern that backtracks", object({ a: { pattern: "^(a+)+$" } }), { a: `${"a".repeat(60)}b` }],
  ["a name's pattern that does", object({}, { patternProperties: { "^(a+)+$": {} } }), { [`${"a".repeat(60)}b`]: 1 }],
  [
    "references that double at every step",
    object({ a: { $ref: "#/$defs/d0" } }, { $defs: { ...doubling, d60: { type: "string" } } }),
    { a: 1 },
  ],
  [
    "the uniqueness of many objects",
    object({ a: { uniqueItems: true } }),
    { a: Array.from({ length: 50_000 }, (_, n) => ({ n })) },
  ],
])("%s is given up, once, and the server decides", (_what, schema, args) => {
  const check = argumentCheck(schema as Record<string, unknown>);
  // Each would take from a minute to the end of days.
  expect(check({ ...args })).toEqual([]);
  expect(
    timeBoxed(50, () => check({ ...args })),
    "at the second call nothing is tried",
  ).toEqual({
    kind: "done",
    value: [],
  });
});

test("work that is done in time gives what it gives, and what it throws is its own", () => {
  expect(timeBoxed(1_000, () => 5)).toEqual({ kind: "done", value: 5 });
  const error = new TypeError("mine");
  expect(() =>
    timeBoxed(1_000, () => {
      throw error;
    }),
  ).toThrow(error);
  expect(
    timeBoxed(5, () => {
      for (;;);
    }),
  ).toEqual({ kind: "late" });
  expect(timeBoxed(1_000, () => timeBoxed(1_000, () => "inner"))).toMatchObject({ value: { value: "inner" } });
});
