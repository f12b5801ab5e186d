import { describe, expect, test } from "vitest";
import { z } from "zod";
import { systemClock } from "../../src/clock.js";
import { isPayload } from "../../src/protocol/guards.js";
import { createEnvironment } from "../../src/tools/environment.js";
import { defineTool, parseObject, ToolFailure } from "../../src/tools/tool.js";
import { callOf, execute, gate, HandClock, inWorkspace, toolOf } from "./support.js";

const clock = systemClock();
const only = (run: Parameters<typeof toolOf>[0], maxOutputChars = 16_000) =>
  createEnvironment({ tools: [toolOf(run)], clock, maxOutputChars });

describe("what the model sees of the tools", () => {
  test("every built-in tool has a description and a clean JSON Schema of an object", async () => {
    const { environment } = await inWorkspace();
    const definitions = environment.definitions();
    expect(definitions.map(({ name }) => name)).toEqual([
      "exec_command",
      "read_file",
      "write_file",
      "edit_file",
      "read_image",
    ]);
    for (const { description, parameters } of definitions) {
      expect(description).not.toBe("");
      expect(parameters).toMatchObject({ type: "object", additionalProperties: false });
      expect(parameters).not.toHaveProperty("$schema");
      expect(JSON.stringify(parameters)).not.toContain(String(Number.MAX_SAFE_INTEGER));
    }
  });

  test("a tool that may write says so, and an unknown one counts as such", async () => {
    const { environment } = await inWorkspace();
    const names = ["exec_command", "read_file", "write_file", "edit_file", "read_image", "nothing_of_the_kind"];
    expect(names.map((name) => environment.mayWrite(name))).toEqual([true, false, true, true, false, true]);
  });

  test("two tools of one name are a bug", () => {
    const tool = toolOf(async function* () {
      yield "";
      return {};
    });
    expect(() => createEnvironment({ tools: [tool, tool], clock })).toThrow();
  });
});

describe("a call that cannot run", () => {
  const bad: [string, string, string, RegExp[]][] = [
    ["an unknown tool", "nope", "{}", [/"nope"/, /exec_command, read_file/]],
    ["no JSON", "read_file", '{"file_path": ', [/not valid JSON/]],
    ["an array", "read_file", "[]", [/an array/]],
    ["null", "read_file", "null", [/null/]],
    ["a string", "read_file", '"x"', [/a string/]],
    ["nested too deeply", "read_file", `${'{"a":'.repeat(501)}1${"}".repeat(501)}`, [/nested too deeply/]],
    ["a missing parameter", "read_file", "", [/file_path, offset\?, limit\?/, /- file_path: /]],
    ["a wrong type", "read_file", '{"file_path":"a","offset":"3"}', [/- offset: .*number/]],
    ["an unknown parameter", "read_file", '{"file_path":"a","path":"b"}', [/path/]],
    ["two problems", "edit_file", '{"file_path":1,"old_string":""}', [/- file_path/, /- old_string/, /- new_string/]],
  ];
  test.each(bad)(
    "%s is told before it runs, and its output is failed with the same text",
    async (_, name, args, texts) => {
      const { environment } = await inWorkspace();
      const told = environment.check(callOf(name, args));
      for (const text of texts) expect(told).toMatch(text);
      const { result } = await execute(environment, name, args);
      expect(result).toMatchObject({ output: told, stop_reason: "failed" });
    },
  );

  test.each(["", "  \n\t", "{}"])("F12: %j as arguments means an empty object", async (args) => {
    const environment = only(async function* (given) {
      yield JSON.stringify(given);
      return {};
    });
    expect(environment.check(callOf("tool", args))).toBeUndefined();
    expect((await execute(environment, "tool", args)).result.output).toBe("{}");
  });

  test("null for an optional parameter means that it was left out", () => {
    const tool = defineTool({
      name: "t",
      description: "d",
      parameters: z.strictObject({ a: z.string(), b: z.int().optional() }),
      mayWrite: false,
      async *run() {
        yield "";
        return {};
      },
    });
    expect(tool.parse('{"a":"x","b":null}')).toEqual({ ok: true, value: { a: "x" } });
    expect(tool.parse('{"a":null}').ok).toBe(false);
  });

  test("a key named __proto__ is a key like any other", () => {
    expect(parseObject("t", '{"__proto__":{"x":1}}')).toMatchObject({ ok: true });
    expect(({} as { x?: unknown }).x).toBeUndefined();
  });
});

describe("the output of a call", () => {
  test("streams what the tool says as it says it", async () => {
    const second = gate();
    const environment = only(async function* () {
      yield "one ";
      await second.opened;
      yield "two";
      return {};
    });
    const { deltas, messages } = await execute(environment, "tool", {}, { onDelta: () => second.open() });
    expect(deltas).toEqual(["one ", "two"]);
    expect(messages.map(({ payload }) => ("event_type" in payload ? payload.event_type : payload.type))).toEqual([
      "start",
      "delta",
      "delta",
      "stop",
      "tool_call_output",
    ]);
  });

  test("is never empty", async () => {
    const environment = only(async function* () {
      yield "";
      return {};
    });
    const { result } = await execute(environment, "tool", {});
    expect(result.output).toBe("[no output]");
    expect(result).not.toHaveProperty("stop_reason");
  });

  test.each([
    ["text\n", "text\n[note]"],
    ["text", "text\n[note]"],
    ["", "[note]"],
  ])("a note after %j stands on a line of its own", async (text, expected) => {
    const environment = only(async function* () {
      yield text;
      return { note: "[note]", exitCode: 0 };
    });
    const { result } = await execute(environment, "tool", {});
    expect(result).toMatchObject({ output: expected, exit_code: 0 });
  });

  test("a character that the tool yields in two halves arrives whole", async () => {
    const environment = only(async function* () {
      yield "a\ud83d";
      yield "\ude42b";
      yield "\ud83d";
      return {};
    });
    const { result, deltas } = await execute(environment, "tool", {});
    expect(result.output).toBe("a🙂b\uFFFD");
    expect(deltas).toEqual(["a", "🙂b", "\uFFFD"]);
  });

  test("images come whole, in one delta and in the complete message", async () => {
    const environment = only(async function* () {
      yield "";
      return { images: ["data:image/png;base64,AA=="] };
    });
    const { result, messages } = await execute(environment, "tool", {});
    expect(result).toMatchObject({ output: "[no output]", images: ["data:image/png;base64,AA=="] });
    const withImages = messages.filter(
      (m) => isPayload(m, "partial_tool_call_output") && m.payload.images !== undefined,
    );
    expect(withImages).toHaveLength(1);
  });

  test("beyond the limit: the first half streams, the end follows as one last delta after a line that counts", async () => {
    const environment = only(async function* () {
      for (let i = 0; i < 1000; i += 1) yield `${String(i).padStart(4, "0")} abcd\n`;
      return { note: "[exit code 7]" };
    }, 1000);
    const { result, deltas } = await execute(environment, "tool", {});
    expect(result.output.length).toBeLessThanOrEqual(1000);
    expect(deltas.slice(0, -1).join("")).toHaveLength(500);
    expect(deltas.at(-1)).toMatch(/^\[\.\.\. \d+ characters left out \.\.\.\]\n/);
    expect(result.output.endsWith("0999 abcd\n[exit code 7]")).toBe(true);
  });
});

describe("progress", () => {
  test("is silent while text streams, then tells bytes and the latest text at most twice a second, the last state too", async () => {
    const hand = new HandClock();
    const seen: { at: number; bytes: number; tail: string }[] = [];
    const start = hand.now();
    const tool = toolOf(async function* () {
      yield "x".repeat(100);
      for (let i = 0; i < 20; i += 1) {
        yield `line ${i}\n`;
        hand.advance(100);
      }
      yield "北";
      hand.advance(10_000);
      return {};
    });
    const environment = createEnvironment({ tools: [tool], clock: hand, maxOutputChars: 200 });
    await execute(
      environment,
      "tool",
      {},
      { onProgress: ({ bytes, tail }) => seen.push({ at: hand.now() - start, bytes, tail }) },
    );
    expect(seen[0]).toEqual({ at: 0, bytes: 107, tail: "line 0\n" });
    for (const [index, { at }] of seen.entries()) {
      if (index > 0) expect(at - (seen[index - 1]?.at ?? 0)).toBeGreaterThanOrEqual(500);
    }
    expect(seen.length).toBeGreaterThan(3);
    expect(seen.at(-1)?.tail.endsWith("line 19\n北")).toBe(true);
    expect(seen.at(-1)?.bytes).toBe(100 + 10 * 7 + 10 * 8 + 3);
    expect(hand.waiting).toBe(0);
  });
});

describe("a tool that breaks", () => {
  test("an exception becomes a failed output that keeps what was said before", async () => {
    const environment = only(async function* () {
      yield "half of it";
      throw new Error("the disk caught fire");
    });
    const { result } = await execute(environment, "tool", {});
    expect(result).toMatchObject({ output: "half of it\n[tool failed: the disk caught fire]", stop_reason: "failed" });
  });

  test("a ToolFailure is told word for word", async () => {
    const environment = only(async function* () {
      yield* [];
      throw new ToolFailure("Use another path.");
    });
    expect((await execute(environment, "tool", {})).result).toMatchObject({
      output: "Use another path.",
      stop_reason: "failed",
    });
  });

  test.each(["parse", "run"] as const)("a %s that throws at once is a failed output too", async (part) => {
    const tool = toolOf(async function* () {
      yield "";
      return {};
    });
    const broken = {
      ...tool,
      [part]: () => {
        throw new Error("bug");
      },
    };
    const { result } = await execute(createEnvironment({ tools: [broken], clock }), "tool", {});
    expect(result).toMatchObject({ output: "[tool failed: bug]", stop_reason: "failed" });
  });
});
