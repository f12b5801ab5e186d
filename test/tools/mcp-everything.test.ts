// The published server that exercises the whole protocol, over both transports.

import { describe, expect, test, vi } from "vitest";
import type { McpServerSpec } from "../../src/tools/mcp-client.js";
import { everything, startEverything } from "../support/mcp-servers.js";
import { connect } from "./mcp-support.js";
import { callOf, execute } from "./support.js";

describe.each([
  ["stdio", async (): Promise<McpServerSpec> => everything()],
  ["streamable HTTP", async (): Promise<McpServerSpec> => ({ url: (await startEverything()).url, headers: {} })],
])("over %s", (_transport, specOf) => {
  test("its tools are offered with their schemas, and may write unless it says that they only read", async () => {
    const { mcp, environment } = await connect({ all: await specOf() });
    const echo = environment.definitions().find(({ name }) => name === "mcp__all__echo");
    expect(echo).toMatchObject({
      description: expect.stringMatching(/echo/i),
      parameters: { type: "object", properties: { message: { type: "string" } }, required: ["message"] },
    });
    expect(environment.mayWrite("mcp__all__echo")).toBe(false);
    expect(environment.mayWrite("mcp__all__toggle-simulated-logging")).toBe(true);
    expect(environment.mayWrite("mcp__all__not-there")).toBe(true);
    expect(environment.definitions().length).toBeGreaterThanOrEqual(12);
    expect(mcp.figures.connected).toBe(1);
  });

  test("texts, images, structured content, resources, links and errors are answers", async () => {
    const { environment } = await connect({ all: await specOf() });
    const run = async (tool: string, args: object) => (await execute(environment, `mcp__all__${tool}`, args)).result;
    expect(await run("echo", { message: "hi" })).toMatchObject({ output: "Echo: hi" });
    expect((await run("get-sum", { a: 2, b: 3 })).output).toMatch(/\b5\b/);
    const image = await run("get-tiny-image", {});
    expect(image.images).toEqual([expect.stringMatching(/^data:image\/png;base64,iVBOR/)]);
    expect(image.output).toMatch(/image/);
    const structured = await run("get-structured-content", { location: "Chicago" });
    expect(Object.keys(JSON.parse(structured.output))).toEqual(["temperature", "conditions", "humidity"]);
    expect((await run("get-resource-reference", { resourceType: "Text", resourceId: 1 })).output).toMatch(
      /\[resource demo:\/\/resource\/dynamic\/text\/1, text\/plain\]\nResource 1: /,
    );
    expect((await run("get-resource-links", { count: 2 })).output).toMatch(
      /\[resource link demo:.*\n\[resource link demo:/,
    );
    expect(await run("echo", { message: 5 })).toMatchObject({
      stop_reason: "failed",
      output: expect.stringMatching(/message/),
    });
  });

  test("arguments that do not fit the schema of a tool are known before anyone is asked", async () => {
    const { environment } = await connect({ every: await specOf() });
    const check = (tool: string, args: object) => environment.check(callOf(`mcp__every__${tool}`, args));
    expect(check("echo", {})).toBe(
      "The arguments of mcp__every__echo do not fit its parameters:\n- arguments: must have required property 'message'",
    );
    expect(check("get-sum", { a: "x", b: {} })).toMatch(/\n- a: must be number\n- b: must be number$/);
    expect(check("echo", { message: "hi" })).toBeUndefined();
    expect(check("get-sum", { a: 1, b: 2.5 })).toBeUndefined();
  });

  test("calls run beside each other, and one that is aborted ends at once", async () => {
    const { environment } = await connect({ all: await specOf() });
    const abort = new AbortController();
    const long = execute(
      environment,
      "mcp__all__trigger-long-running-operation",
      { duration: 60, steps: 600 },
      { signal: abort.signal },
    );
    const sums = await Promise.all(
      Array.from({ length: 20 }, (_, a) => execute(environment, "mcp__all__get-sum", { a, b: 1_000 })),
    );
    expect(sums.map(({ result }) => Number(/\b1\d{3}\b(?!.*\d{4})/.exec(result.output)?.[0]))).toEqual(
      Array.from({ length: 20 }, (_, a) => a + 1_000),
    );
    const began = performance.now();
    abort.abort();
    expect((await long).result).toMatchObject({ stop_reason: "aborted" });
    // Of the sixty seconds that it takes.
    expect(performance.now() - began).toBeLessThan(20_000);
    expect((await execute(environment, "mcp__all__echo", { message: "on" })).result.output).toBe("Echo: on");
  });
});

test("over stdio it sees nothing of our environment", async () => {
  vi.stubEnv("OPENAI_API_KEY", "sk-not-for-servers");
  const { environment } = await connect({ all: everything({ GIVEN: "yes" }) });
  vi.unstubAllEnvs();
  const { result } = await execute(environment, "mcp__all__get-env", {});
  expect(JSON.parse(result.output)).toMatchObject({ GIVEN: "yes" });
  expect(result.output).not.toContain("sk-not-for-servers");
});

test("over HTTP a server that was restarted is connected to again by the next call, which is made once", async () => {
  const server = await startEverything();
  const { mcp, environment } = await connect({ all: { url: server.url, headers: {} } });
  await server.kill();
  const { result } = await execute(environment, "mcp__all__echo", { message: "anyone?" });
  expect(result).toMatchObject({ stop_reason: "failed", output: expect.stringMatching(/not done/) });
  await startEverything(server.port);
  expect((await execute(environment, "mcp__all__echo", { message: "there" })).result.output).toBe("Echo: there");
  expect(mcp.figures.connected).toBe(1);
});

test("over HTTP a restart between two calls costs neither of them", async () => {
  const server = await startEverything();
  const { environment } = await connect({ all: { url: server.url, headers: {} } });
  await server.kill();
  await startEverything(server.port);
  const ran = await Promise.all(["a", "b"].map((message) => execute(environment, "mcp__all__echo", { message })));
  expect(ran.map(({ result }) => result.output)).toEqual(["Echo: a", "Echo: b"]);
});
