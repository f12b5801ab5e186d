import { expect, test } from "vitest";
import { judgeTools, MAX_TOOLS_OF_A_SERVER } from "../../src/tools/mcp-tool-list.js";

const tool = (name: string, more: object = {}) => ({
  name,
  description: "d",
  inputSchema: { type: "object" },
  ...more,
});
const names = (listed: unknown[]) => judgeTools("s", listed).tools.map(({ definition }) => definition.name);

test("a good tool keeps its schema, but for the dialect, which some providers refuse", () => {
  const inputSchema = {
    $schema: "http://json-schema.org/draft-07/schema#",
    type: "object",
    properties: { a: { type: "number" } },
    required: ["a"],
  };
  expect(judgeTools("s", [tool("sum", { inputSchema })]).tools[0]?.definition).toEqual({
    name: "mcp__s__sum",
    description: "d",
    parameters: { type: "object", properties: { a: { type: "number" } }, required: ["a"] },
  });
});

test("a tool may write unless the server says that it only reads, and nothing else", () => {
  const mayWrite = (annotations: unknown) => judgeTools("s", [tool("t", { annotations })]).tools[0]?.mayWrite;
  expect(mayWrite({ readOnlyHint: true })).toBe(false);
  expect(mayWrite({ readOnlyHint: true, destructiveHint: false })).toBe(false);
  for (const other of [undefined, null, {}, "yes", [], { readOnlyHint: "true" }, { readOnlyHint: 1 }]) {
    expect(mayWrite(other), JSON.stringify(other)).toBe(true);
  }
  expect(mayWrite({ readOnlyHint: true, destructiveHint: true })).toBe(true);
});

test.each([
  ["no object", "text", /without a name/],
  ["no name", { inputSchema: { type: "object" } }, /without a name/],
  ["an empty name", tool(""), /""/],
  ["a name without end", tool("x".repeat(300)), /"x{64}"/],
  ["no schema", tool("t", { inputSchema: undefined }), /schema/],
  ["a schema that is a list", tool("t", { inputSchema: [] }), /schema/],
  ["a schema of something else", tool("t", { inputSchema: { type: "string" } }), /schema/],
  ["a long schema", tool("t", { inputSchema: { type: "object", description: "x".repeat(40_000) } }), /32768/],
  ["a tool that only runs as a task", tool("t", { execution: { taskSupport: "required" } }), /task/],
])("%s is left out with a reason, and the others stay", (_what, bad, reason) => {
  const { tools, problems } = judgeTools("s", [tool("before"), bad, tool("after")]);
  expect(tools.map(({ ownName }) => ownName)).toEqual(["before", "after"]);
  expect(problems).toHaveLength(1);
  expect(problems[0]).toMatch(reason);
});

test("a schema is not followed for ever", () => {
  let deep: object = {};
  for (let level = 0; level < 100_000; level++) deep = { items: deep };
  const { tools, problems } = judgeTools("s", [tool("deep", { inputSchema: { type: "object", properties: deep } })]);
  expect(tools).toEqual([]);
  expect(problems[0]).toMatch(/nested deeper/);
});

test("a crowd is cut, and so is what the definitions weigh together", () => {
  expect(names(Array.from({ length: 5_000 }, (_, index) => tool(`t${index}`)))).toHaveLength(MAX_TOOLS_OF_A_SERVER);
  const heavy = Array.from({ length: 50 }, (_, index) =>
    tool(`t${index}`, { inputSchema: { type: "object", description: "x".repeat(30_000) } }),
  );
  const { tools, problems } = judgeTools("s", heavy);
  expect(JSON.stringify(tools).length).toBeLessThan(300_000);
  expect(problems.length).toBeLessThanOrEqual(11);
});

test("a description is cut and has no half characters", () => {
  const [long] = judgeTools("s", [tool("t", { description: "x".repeat(100_000) })]).tools;
  expect(long?.definition.description.length).toBeLessThan(5_000);
  const [broken] = judgeTools("s", [tool("t", { description: "a\ud83d" })]).tools;
  expect(broken?.definition.description).toBe("a\ufffd");
  expect(judgeTools("s", [tool("t", { description: 5, title: "the title" })]).tools[0]?.definition.description).toBe(
    "the title",
  );
});

test("of two tools that end up with one name the first stays", () => {
  const [odd] = names([tool("a.b")]);
  const twin = String(odd).slice("mcp__s__".length);
  const { tools, problems } = judgeTools("s", [tool("a.b"), tool(twin), tool("a.b")]);
  expect(tools.map(({ ownName }) => ownName)).toEqual(["a.b"]);
  expect(problems).toHaveLength(2);
});
