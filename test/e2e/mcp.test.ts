// MCP servers behind the real server: what a Session records of them, what a call of them is on the stream, and what is
// left of them when the server goes.

import { expect, test, vi } from "vitest";
import type { OmniMessage } from "../../src/protocol/message.js";
import { everything, hostile, startEverything } from "../support/mcp-servers.js";
import { type Server, startOmnid } from "../support/server.js";
import { answer, calls, startUpstream, type Upstream } from "../support/upstream.js";
import { livingInGroup } from "../tools/support.js";
import {
  api,
  asked,
  at,
  decide,
  expectLawful,
  expectPaired,
  follow,
  history,
  makeSession,
  outputsIn,
  payloads,
  prompt,
  untilIdle,
} from "./api.js";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

const SECRET = "s3cr3t-for-the-mcp-server";

async function start(mcpServers: Record<string, object>, env: Record<string, string> = {}) {
  const upstream = await startUpstream();
  const server = await startOmnid({
    config: { ...upstream.config({ vision: true }), mcpServers },
    env: { OMNID_RETRY_LIMIT: "0", ...env },
  });
  return { upstream, server };
}

const toolsOf = (records: readonly OmniMessage[]): string[][] =>
  records
    .filter(({ type }) => type === "session_meta")
    .map(({ payload }) => (payload as { tools: { name: string }[] }).tools.map(({ name }) => name));

const sentTools = ({ requests }: Upstream, number = requests.length - 1): string[] =>
  ((requests[number]?.body.tools ?? []) as { function: { name: string } }[]).map((tool) => tool.function.name);

async function tell(server: Server, id: string): Promise<void> {
  await prompt(server, id, "Go on.");
  await untilIdle(server, id);
}

test("tools of a process and of an address are recorded, offered, asked about and run like any other", async () => {
  const far = await startEverything();
  const { upstream, server } = await start(
    {
      near: everything({ API_KEY: SECRET }),
      far: { url: far.url, headers: { authorization: `Bearer ${SECRET}` } },
    },
    { LOG_LEVEL: "trace", OPENAI_API_KEY: "sk-of-the-server-0123456789" },
  );
  const id = await makeSession(server, { approvalMode: "read-only", tools: ["read_file"] });
  const offered = toolsOf((await history(server, id)).records)[0] as string[];
  expect(offered[0]).toBe("read_file");
  for (const name of ["mcp__near__echo", "mcp__far__echo", "mcp__near__get-tiny-image"])
    expect(offered).toContain(name);

  const reader = await follow(server, id);
  upstream.script(
    calls(
      { id: "call_near", name: "mcp__near__echo", args: { message: "near" } },
      { id: "call_far", name: "mcp__far__echo", args: { message: "far" } },
      { id: "call_image", name: "mcp__far__get-tiny-image", args: {} },
      { id: "call_env", name: "mcp__near__get-env", args: {} },
      { id: "call_write", name: "mcp__near__toggle-simulated-logging", args: {} },
      { id: "call_none", name: "mcp__near__no_such_tool", args: {} },
    ),
    answer("Done."),
  );
  const taskId = await prompt(server, id, "Call them all.");
  // Only the one that may write is asked about: the others say that they only read, or are not there.
  expect(await asked(reader)).toBe("call_write");
  expect(await decide(server, id, "call_write", "deny")).toBe(204);
  await reader.untilEnded(taskId);

  expect(sentTools(upstream)).toEqual(offered);
  const outputs = new Map(payloads(reader.messages, "tool_call_output").map((output) => [output.tool_call_id, output]));
  expect(outputs.get("call_near")?.output).toBe("Echo: near");
  expect(outputs.get("call_far")?.output).toBe("Echo: far");
  expect(outputs.get("call_image")?.images).toEqual([expect.stringMatching(/^data:image\/png;base64,/)]);
  expect(outputs.get("call_none")).toMatchObject({
    stop_reason: "failed",
    output: expect.stringMatching(/no tool named/),
  });
  const environment = JSON.parse(outputs.get("call_env")?.output ?? "{}");
  expect(environment).toMatchObject({ API_KEY: SECRET });
  expect(JSON.stringify(environment)).not.toMatch(/sk-of-the-server|OMNID_/);
  expectPaired(upstream.requests.at(-1)?.body.messages ?? []);
  await expectLawful(server, id, reader.messages);

  const metrics = await fetch(`${server.url}/metrics`).then((response) => response.text());
  expect(metrics).toMatch(/^omnid_mcp_servers_connected 2$/m);
  expect(metrics).toMatch(/^omnid_mcp_calls_total\{server="far",outcome="answered"\} 2$/m);
  expect(metrics).toMatch(/^omnid_tool_calls_total\{tool="mcp__far",outcome="completed"\} 2$/m);
  expect(server.printed()).not.toContain(SECRET);
});

test("servers that fail, hang or die harm neither the start nor a Session", async () => {
  const began = performance.now();
  const { upstream, server } = await start({
    fails: hostile("exit"),
    hangs: hostile("silent"),
    gone: { url: "http://127.0.0.1:1/mcp" },
    dies: hostile("plain"),
  });
  const id = await makeSession(server, { approvalMode: "allow-all" });
  // Of the minute that the one that hangs is given: a Session made right after the start waits for it for 4 s.
  expect(performance.now() - began).toBeLessThan(30_000);
  // No later one does.
  const took: number[] = [];
  for (let later = 0; later < 5; later++) {
    const again = performance.now();
    await makeSession(server);
    took.push(performance.now() - again);
  }
  expect(Math.min(...took)).toBeLessThan(2_000);

  const reader = await follow(server, id);
  upstream.script(
    calls(
      { id: "call_die", name: "mcp__dies__die", args: {} },
      { id: "call_gone", name: "mcp__gone__anything", args: {} },
      { id: "call_own", name: "exec_command", args: { cmd: "echo fine" } },
    ),
    answer("Done."),
  );
  await reader.untilEnded(await prompt(server, id, "Call them all."));
  expect(outputsIn(upstream.requests.at(-1)?.body.messages ?? [])).toEqual([
    expect.stringMatching(/"dies" was lost during the call: it ended with exit code 7/),
    expect.stringMatching(/"gone" is not connected/),
    "fine\n",
  ]);
  await expectLawful(server, id, reader.messages);
});

test("an interrupt does not wait for a server, which is told", async () => {
  const { upstream, server } = await start({ s: hostile("plain") });
  const id = await makeSession(server, { approvalMode: "allow-all" });
  const reader = await follow(server, id);
  upstream.script(calls({ id: "call_never", name: "mcp__s__never", args: {} }));
  const taskId = await prompt(server, id, "Wait for it.");
  await reader.untilPayload("request_end", () => true);
  const began = performance.now();
  expect((await api(server, "POST", at(id, "/abort"))).status).toBeLessThan(300);
  await reader.untilEnded(taskId);
  // Of the two minutes that a call may take.
  expect(performance.now() - began).toBeLessThan(20_000);
  expect(payloads(reader.messages, "tool_call_output")).toMatchObject([
    { tool_call_id: "call_never", stop_reason: "aborted" },
  ]);
  upstream.script(calls({ id: "call_told", name: "mcp__s__cancelled", args: {} }), answer("Done."));
  await tell(server, id);
  expect(outputsIn(upstream.requests.at(-1)?.body.messages ?? [])).toContain('["aborted by the user"]');
  await expectLawful(server, id, reader.messages);
});

test("a list that changes is the next context's: a new Session has it, and this one after a compaction", async () => {
  const { upstream, server } = await start({ s: hostile("changing") });
  const id = await makeSession(server, { approvalMode: "allow-all", tools: [] });
  upstream.script(calls({ id: "call_1", name: "mcp__s__change", args: {} }), answer("Changed."));
  await tell(server, id);
  expect(sentTools(upstream)).toContain("mcp__s__version1");
  await vi.waitFor(async () => {
    const [tools] = toolsOf((await history(server, await makeSession(server))).records);
    expect(tools).toContain("mcp__s__version2");
  });
  upstream.script(answer("Still the same."));
  await tell(server, id);
  expect(sentTools(upstream)).toContain("mcp__s__version1");

  upstream.script(answer("The summary."));
  expect((await api(server, "POST", at(id, "/compact"))).status).toBe(202);
  await untilIdle(server, id);
  expect(sentTools(upstream), "the Request of the summary").toContain("mcp__s__version1");
  upstream.script(answer("Another context."));
  await tell(server, id);
  expect(sentTools(upstream)).toContain("mcp__s__version2");
  const recorded = toolsOf((await history(server, id)).records);
  expect(recorded).toHaveLength(2);
  expect(recorded[1]).toEqual(sentTools(upstream));
  await expectLawful(server, id, [], { joined: true, running: true });
});

test("after a restart a Session goes on with the tools that it recorded, also where their server is gone", async () => {
  const far = await startEverything();
  const { upstream, server } = await start({ far: { url: far.url } });
  const id = await makeSession(server, { approvalMode: "allow-all" });
  const [offered] = toolsOf((await history(server, id)).records);
  expect((await server.stop("SIGTERM")).code).toBe(0);
  await far.kill();
  const next = await server.restart();
  upstream.script(calls({ id: "call_1", name: "mcp__far__echo", args: { message: "?" } }), answer("It is gone."));
  await tell(next, id);
  expect(sentTools(upstream)).toEqual(offered);
  expect(outputsIn(upstream.requests.at(-1)?.body.messages ?? [])).toEqual([
    expect.stringMatching(/"far" is not connected/),
  ]);
  expectPaired(upstream.requests.at(-1)?.body.messages ?? []);
  await expectLawful(next, id, [], { joined: true, running: true });
});

test.each(["SIGTERM", "SIGKILL"] as const)(
  "H9: when the server ends by %s nothing of an MCP server's process group is left",
  async (signal) => {
    const { upstream, server } = await start({ s: hostile("stubborn") });
    const id = await makeSession(server, { approvalMode: "allow-all" });
    upstream.script(calls({ id: "call_1", name: "mcp__s__family", args: {} }), answer("Done."));
    await tell(server, id);
    const [output] = outputsIn(upstream.requests.at(-1)?.body.messages ?? []);
    const group = Number(output?.split(" ")[0]);
    expect((await livingInGroup(group)).length).toBeGreaterThanOrEqual(3);
    const { code } = await server.stop(signal);
    if (signal === "SIGTERM") expect(code).toBe(0);
    await vi.waitFor(async () => expect(await livingInGroup(group)).toEqual([]), { timeout: 20_000, interval: 50 });
  },
);

test("a server whose port is taken ends its MCP servers with itself", async () => {
  const { server } = await start({});
  await expect(
    startOmnid({
      config: { mcpServers: { s: hostile("stubborn") } },
      env: { PORT: String(server.port) },
    }),
  ).rejects.toThrow(/EADDRINUSE/);
});
