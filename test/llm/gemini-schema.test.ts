import { describe, expect, test } from "vitest";
import { geminiParameters } from "../../src/llm/wire/gemini-schema.js";

describe("parametersJsonSchema", () => {
  test("is the tool's own schema, unions and constants and all, without the draft's headers", () => {
    const kept = {
      type: "object",
      properties: {
        mode: { anyOf: [{ const: "a" }, { type: "null" }] },
        list: { type: ["array", "null"], items: { type: "string", minLength: 1 } },
      },
      required: ["mode"],
      additionalProperties: false,
    };
    expect(geminiParameters({ $schema: "https://json-schema.org/draft/2020-12/schema", $id: "x", ...kept })).toEqual(
      kept,
    );
  });

  test("a tool that takes nothing has none; one that takes anything has", () => {
    expect(geminiParameters(undefined)).toBeUndefined();
    expect(geminiParameters({ type: "object", properties: {} })).toBeUndefined();
    expect(geminiParameters({ type: "object", properties: {}, additionalProperties: false })).toBeUndefined();
    const open = { type: "object", additionalProperties: { type: "string" } };
    expect(geminiParameters({ ...open, properties: {} })).toEqual(open);
  });

  test("references within the document are followed, with what stands beside them", () => {
    const schema = {
      $defs: { point: { type: "object", properties: { x: { $ref: "#/$defs/n~1m" } } }, "n/m": { type: "number" } },
      properties: {
        from: { $ref: "#/$defs/point", description: "start" },
        many: { type: "array", items: { $ref: "#/$defs/point" } },
      },
    };
    const point = { type: "object", properties: { x: { type: "number" } } };
    expect(geminiParameters(schema)).toEqual({
      type: "object",
      properties: { from: { ...point, description: "start" }, many: { type: "array", items: point } },
    });
    expect(geminiParameters({ $ref: "#/definitions/all", definitions: { all: { properties: { a: {} } } } })).toEqual({
      type: "object",
      properties: { a: {} },
    });
  });

  test("a reference to itself, to nowhere or to another document allows anything", () => {
    const tree = { type: "object", properties: { children: { type: "array", items: { $ref: "#/$defs/tree" } } } };
    expect(geminiParameters({ ...tree, $defs: { tree } })).toEqual({
      type: "object",
      properties: {
        children: { type: "array", items: { type: "object", properties: { children: { type: "array", items: {} } } } },
      },
    });
    const lost = ["#/$defs/none", "https://x.test/s.json", "#/$defs/__proto__", "#/%"].map(($ref) => ({ $ref }));
    expect(geminiParameters({ properties: { a: { anyOf: lost } }, $defs: {} })).toEqual({
      type: "object",
      properties: { a: { anyOf: [{}, {}, {}, {}] } },
    });
  });

  test("properties may be called as keywords are, and data is no schema", () => {
    const schema = {
      type: "object",
      properties: { $id: { type: "string" }, definitions: { type: "string", default: { $ref: "#/x", $id: 1 } } },
    };
    expect(geminiParameters(schema)).toEqual(schema);
  });

  test("references that multiply end in a schema of bounded size", () => {
    const $defs: Record<string, object> = { d0: { type: "string" } };
    for (let n = 1; n < 30; n++) {
      const $ref = `#/$defs/d${n - 1}`;
      $defs[`d${n}`] = { type: "object", properties: { a: { $ref }, b: { $ref } } };
    }
    const schema = geminiParameters({ properties: { top: { $ref: "#/$defs/d29" } }, $defs });
    expect(JSON.stringify(schema).length).toBeLessThan(200_000);
  });
});
