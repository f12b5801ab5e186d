// Servers that are slow, die, flood and lie. Whatever they do, a call has one well-formed output, other servers work on,
// and nothing of them is left.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { MESSAGE_COST, RATE } from "../../src/tools/mcp-limits.js";
import { MessageGuard } from "../../src/tools/mcp-message.js";
import { StdioTransport } from "../../src/tools/mcp-stdio.js";
import { hostile } from "../support/mcp-servers.js";
import { begin, connect } from "./mcp-support.js";
import { execute, HandClock, livingInGroup, temporaryFolder } from "./support.js";

const until = <T>(look: () => T | Promise<T>) => vi.waitFor(look, { timeout: 20_000, interval: 20 });

describe("a server that does not come up", () => {
  test.each([
    ["a command that is not there", { command: "no-such-command-here", args: [], env: {} }, /exit code 127/],
    ["one that ends at once", hostile("exit"), /exit code 3/],
    ["a protocol from the future", hostile("future"), /2999-01-01/],
    ["an address where nobody listens", { url: "http://127.0.0.1:1/mcp", headers: {} }, /cannot be reached/],
  ])("%s: a warning says why, and others work", async (_what, spec, reason) => {
    const { environment, lines, names } = await connect({ bad: spec, good: hostile("plain") });
    expect(names().every((name) => name.startsWith("mcp__good__"))).toBe(true);
    const warning = lines.find(({ level }) => level === "warn");
    expect(warning?.details).toMatchObject({ server: "bad", reason: expect.stringMatching(reason) });
    expect((await execute(environment, "mcp__good__echo", { a: 1 })).result.output).toBe('{"a":1}');
  });

  test("what it wrote to its standard error is in the log, for whoever has to mend it", async () => {
    const { lines } = await connect({ bad: hostile("exit") });
    expect(lines.find(({ level }) => level === "warn")?.details.said).toBe("no licence key");
  });

  test("no value of its settings stands in the log, in whatever it says, or in what a model is told", async () => {
    const env = { PIN: "s3cr3t7", PW: "correct horse", SHORT: "1234", ON: "1" };
    const said = "pin $PIN, password $PW, short $SHORT, on $ON";
    const dying = { command: "/bin/sh", args: ["-c", `echo "${said}" >&2; exit 1`], env };
    const script = `process.stdin.once("data", (line) => {
      const { id } = JSON.parse(line);
      const message = "no " + process.env.PIN + " and no " + process.env.PW;
      console.log(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32000, message } }));
    })`;
    const refusing = { command: process.execPath, args: ["-e", script], env };
    const { environment, lines, mcp } = await connect({ dying, refusing });
    const dyingSaid = lines.find(({ details }) => details.server === "dying")?.details.said;
    expect(dyingSaid).toBe("pin [redacted], password [redacted], short [redacted], on 1");
    expect(lines.find(({ details }) => details.server === "refusing")?.details.reason).toContain("no [redacted] and");
    const { result } = await execute(environment, "mcp__refusing__any", {});
    expect(result.output).toContain("no [redacted] and");
    const told = JSON.stringify([lines, mcp.states(), result]);
    for (const secret of ["s3cr3t7", "correct", "horse", "1234"]) expect(told).not.toContain(secret);
  });

  test("one that never answers holds nobody up for more than the moment a new Session waits, and is given up", async () => {
    const clock = new HandClock();
    const { mcp, lines, names } = begin({ silent: hostile("silent") }, clock);
    let isSettled = false;
    const settled = mcp.settled().then(() => {
      isSettled = true;
    });
    clock.advance(3_999);
    await new Promise((resolve) => setImmediate(resolve));
    expect(isSettled).toBe(false);
    clock.advance(1);
    await settled;
    expect(names()).toEqual([]);
    // Its process must be there before the time-out can end it.
    await until(() => expect(clock.waiting).toBeGreaterThanOrEqual(1));
    await until(() => {
      clock.advance(60_000);
      expect(lines.find(({ level }) => level === "warn")?.details.reason).toMatch(/did not answer within 60 s/);
    });
  });

  test("one that does not list its tools is given up too", async () => {
    const clock = new HandClock();
    const { lines } = begin({ listless: hostile("listless") }, clock);
    await until(() => {
      // A little at a time: the answer to its first message is not to be late.
      clock.advance(500);
      expect(lines.find(({ level }) => level === "warn")?.details.reason).toMatch(/did not list its tools within 30 s/);
    });
  });

  test("one that fails at first is connected to later, and not more often than its waits allow", async () => {
    const file = join(await temporaryFolder(), "started");
    const { mcp, names } = await connect({ second: hostile("second", file) });
    expect(names()).toEqual([]);
    await until(() => expect(names()).toContain("mcp__second__echo"));
    expect(mcp.figures.connected).toBe(1);
  });

  test("one without tools is connected and offers none", async () => {
    const { mcp, names, lines } = await connect({ toolless: hostile("toolless") });
    expect(mcp.figures).toEqual({ connected: 1, tools: 0 });
    expect(names()).toEqual([]);
    expect(lines.filter(({ level }) => level === "warn")).toEqual([]);
  });
});

describe("a server that lies about its tools", () => {
  test("only what a provider would take is offered; the rest is named in one warning", async () => {
    const { mcp, lines } = await connect({ liar: hostile("liar") });
    expect(mcp.tools().map(({ definition, mayWrite }) => [definition.name, mayWrite])).toEqual([
      ["mcp__liar__good", false],
      [expect.stringMatching(/^mcp__liar__contradicts_itself_[0-9a-f]{8}$/), true],
      [expect.stringMatching(/^mcp__liar__odd_annotations_[0-9a-f]{8}$/), true],
      [expect.stringMatching(/^mcp__liar__x+_[0-9a-f]{8}$/), true],
    ]);
    expect(lines.filter(({ level }) => level === "warn")).toHaveLength(1);
  });

  test("a crowd of tools is cut, and does not push out the next server's", async () => {
    const { names } = await connect({ crowd: hostile("crowd"), good: hostile("liar") });
    expect(names().filter((name) => name.startsWith("mcp__crowd__"))).toHaveLength(100);
    expect(names()).toContain("mcp__good__good");
    expect(names().length).toBeLessThanOrEqual(116);
  });

  test.each([
    ["abyss", /the answer (nests|holds) \d+ /],
    ["meadow", /the answer holds 600\d{3} values, limit 50000/],
    ["novel", /the answer is \d+ bytes, limit 2097152/],
  ])("a list that is too much is not parsed, and its server is not connected: %s", async (mode, reason) => {
    const { lines, names } = await connect({ s: hostile(mode) });
    expect(names()).toEqual([]);
    expect(lines.find(({ level }) => level === "warn")?.details.reason).toMatch(reason);
  });

  test("a list without end has one", async () => {
    const { names } = await connect({ endless: hostile("endless") });
    expect(names()).toHaveLength(20);
  });
});

describe("a list that changes", () => {
  test("the next context is offered the new tools; a call of the old name says what there is", async () => {
    const { environment, names } = await connect({ s: hostile("changing") });
    expect(names()).toContain("mcp__s__version1");
    await execute(environment, "mcp__s__change", {});
    await until(() => expect(environment.definitions().map(({ name }) => name)).toContain("mcp__s__version2"));
    const { result } = await execute(environment, "mcp__s__version1", {});
    expect(result).toMatchObject({
      stop_reason: "failed",
      output: expect.stringMatching(/no tool.*mcp__s__version2/s),
    });
  });

  test("a storm of changes costs two lists", async () => {
    const { environment, names } = await connect({ s: hostile("changing") });
    await execute(environment, "mcp__s__storm", {});
    await until(() => expect(names()).toContain("mcp__s__version3"));
    expect(Number((await execute(environment, "mcp__s__lists", {})).result.output)).toBe(3);
  });
});

test("a list that changes all the time is asked for a few times, and then twice a minute", async () => {
  const clock = new HandClock();
  const { environment, names } = begin({ s: hostile("restless") }, clock);
  const lists = () => Number(/\d+$/.exec(names()[0] ?? "0")?.[0]);
  await until(() => expect(lists()).toBeGreaterThan(0));
  const listsAfter = async (ms: number) => {
    for (let moment = 0; moment < ms / 1_000; moment++) {
      // Its answer is back when that of a later call is: whatever this second brought is done.
      await execute(environment, "mcp__s__echo", {});
      clock.advance(1_000);
    }
    return lists();
  };
  const soon = await listsAfter(20_000);
  expect(soon).toBeGreaterThanOrEqual(5);
  expect(soon).toBeLessThanOrEqual(9);
  // One of the first few may come late on a busy machine: it is the sum that is bounded.
  expect(await listsAfter(300_000)).toBeLessThanOrEqual(9 + 11);
});

describe("a call", () => {
  test.each([
    ["refused", "refuses", /you may not/],
    ["that fails", "fails", /^it went wrong$/],
    ["answered with what is no result", "malformed", /no result of a tool/],
    ["that kills the server", "die", /was lost during the call: it ended with exit code 7/],
    ["answered with too much", "huge", /was lost during the call: it sent a message of more than 10485760 bytes/],
  ])("%s is a failed output that says so", async (_what, tool, output) => {
    const { environment } = await connect({ s: hostile("plain") });
    const { result } = await execute(environment, `mcp__s__${tool}`, {});
    expect(result).toMatchObject({ stop_reason: "failed", output: expect.stringMatching(output) });
  });

  test("after its server died the next one finds it again", async () => {
    const { environment, names } = await connect({ s: hostile("plain") });
    await execute(environment, "mcp__s__die", {});
    expect(names(), "a context that begins meanwhile").toContain("mcp__s__echo");
    expect((await execute(environment, "mcp__s__echo", { back: true })).result.output).toBe('{"back":true}');
  });

  test("of a server that stays away is answered after a moment", async () => {
    const clock = new HandClock();
    const { environment } = begin({ gone: { url: "http://127.0.0.1:1/mcp", headers: {} } }, clock);
    const ran = execute(environment, "mcp__gone__anything", {});
    const output = await until(async () => {
      clock.advance(1_000);
      return Promise.race([ran, Promise.reject(new Error("not yet"))]);
    });
    expect(output.result).toMatchObject({
      stop_reason: "failed",
      output: expect.stringMatching(/is not connected: .*not done/),
    });
  });

  test("lines that are no messages do no harm", async () => {
    const { environment } = await connect({ s: hostile("plain") });
    expect((await execute(environment, "mcp__s__junk", {})).result.output).toBe("after junk");
  });

  test.each([
    ["nested", /^MCP error -32600: the answer nests 200002 levels deep, limit 200: it was not read$/],
    ["wide", /^MCP error -32600: the answer holds 600\d{3} values, limit 100000: it was not read$/],
  ])(
    "an answer that is %s beyond reason is not parsed: the call fails, and the connection goes on",
    async (kind, said) => {
      const { environment, lines } = await connect({ s: hostile("plain") });
      const { result } = await execute(environment, `mcp__s__${kind}`, {});
      expect(result).toMatchObject({ stop_reason: "failed", output: expect.stringMatching(said) });
      expect((await execute(environment, "mcp__s__echo", {})).result.output).toBe("{}");
      expect(lines.filter(({ level }) => level === "warn")).toEqual([]);
    },
  );

  test("a long text is capped as every output is", async () => {
    const { environment } = await connect({ s: hostile("plain") });
    const { result } = await execute(environment, "mcp__s__long", {});
    expect(result.output.length).toBeLessThanOrEqual(16_000);
    expect(result.output).toMatch(/characters left out/);
  });

  test("questions of the server are answered or refused, and never wait for a person", async () => {
    const { environment } = await connect({ s: hostile("plain") });
    expect((await execute(environment, "mcp__s__asks", {})).result.output).toBe("answered 1 of 5");
  });

  test("arguments that are no object are refused before anyone is asked", async () => {
    const { environment } = await connect({ s: hostile("plain") });
    const { result } = await execute(environment, "mcp__s__echo", "[1]");
    expect(result).toMatchObject({
      stop_reason: "failed",
      output: expect.stringMatching(/an array.*one JSON object/s),
    });
  });
});

class CountingClock extends HandClock {
  /** Timers that were ever set. */
  timers = 0;

  override after(ms: number, run: () => void): () => void {
    this.timers += 1;
    return super.after(ms, run);
  }
}

describe("time", () => {
  test("a call without an answer is a time-out, and the server is told", async () => {
    const file = join(await temporaryFolder(), "cancelled");
    const clock = new HandClock();
    const { environment } = begin({ s: hostile("plain", file) }, clock);
    await until(() => expect(environment.definitions()).not.toEqual([]));
    const before = clock.waiting;
    const ran = execute(environment, "mcp__s__never", {});
    await until(() => expect(clock.waiting).toBeGreaterThan(before));
    clock.advance(119_999);
    clock.advance(1);
    expect((await ran).result).toMatchObject({
      stop_reason: "timeout",
      output: expect.stringMatching(/no answer for 120 s/),
    });
    await until(async () => expect(await readFile(file, "utf8")).toBe("timed out\n"));
  });

  test("an abort ends the call at once and tells the server; the server goes on for others", async () => {
    const { environment } = await connect({ s: hostile("plain") });
    const abort = new AbortController();
    const ran = execute(environment, "mcp__s__never", {}, { signal: abort.signal });
    // The call is out when another one that was made after it is back.
    await execute(environment, "mcp__s__echo", {});
    // The tool never answers, and its call may take longer than this test.
    abort.abort();
    expect((await ran).result).toMatchObject({ stop_reason: "aborted" });
    expect((await execute(environment, "mcp__s__cancelled", {})).result.output).toBe('["aborted by the user"]');
  });

  test("a call that is over is not cancelled", async () => {
    const { environment } = await connect({ s: hostile("plain") });
    await execute(environment, "mcp__s__echo", {});
    await execute(environment, "mcp__s__refuses", {});
    expect((await execute(environment, "mcp__s__cancelled", {})).result.output).toBe("[]");
  });

  test("progress keeps a call alive, but not for ever", async () => {
    const clock = new CountingClock();
    const { environment } = begin({ s: hostile("plain") }, clock);
    await until(() => expect(environment.definitions()).not.toEqual([]));
    let output: string | undefined;
    const ran = execute(environment, "mcp__s__progress", {}).then(({ result }) => {
      output = result.output;
    });
    for (let minute = 0; minute < 60; minute++) {
      // Each sign of life sets a timer anew.
      const before = clock.timers;
      await until(() => expect(clock.timers).toBeGreaterThan(before + 2));
      expect(output).toBeUndefined();
      clock.advance(60_000);
    }
    await ran;
    expect(output).toMatch(/no answer for 3600 s/);
  });
});

describe("floods", () => {
  test("a flood of messages slows its own server, not this process", async () => {
    const { environment } = await connect({ flood: hostile("plain"), good: hostile("plain") });
    const abort = new AbortController();
    const flooded = execute(environment, "mcp__flood__flood", {}, { signal: abort.signal });
    const delay = monitorEventLoopDelay({ resolution: 5 });
    const rss = process.memoryUsage().rss;
    delay.enable();
    for (let call = 0; call < 200; call++) {
      expect((await execute(environment, "mcp__good__echo", { call })).result.output).toBe(`{"call":${call}}`);
    }
    delay.disable();
    abort.abort();
    expect((await flooded).result.stop_reason).toBe("aborted");
    // Not the longest of all: where the machine is shared, that one is its own.
    expect(delay.percentile(99) / 1e6).toBeLessThan(1_000);
    expect(process.memoryUsage().rss - rss).toBeLessThan(200_000_000);
  });

  test("of a flood no more is taken in than its rate allows", async () => {
    const clock = new HandClock();
    const { command, args } = hostile("plain");
    const environment = { PATH: process.env.PATH ?? "" };
    const transport = new StdioTransport({ command, args, environment, clock, guard: new MessageGuard() });
    onTestFinished(() => transport.close());
    let messages = 0;
    transport.onmessage = () => {
      messages += 1;
    };
    await transport.start();
    await transport.send({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "flood", arguments: {} } });
    // At a standstill it waits for the clock.
    await until(() => expect(clock.waiting).toBe(1));
    expect(messages).toBeGreaterThan(1_000);
    expect(messages).toBeLessThanOrEqual(RATE.burst / MESSAGE_COST);
    const before = messages;
    for (let moment = 0; moment < 100; moment++) {
      clock.advance(10);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(messages - before).toBeLessThanOrEqual(RATE.perSecond / MESSAGE_COST);
  });

  test("a flood on standard error is drained, and the server works", async () => {
    const { environment } = await connect({ s: hostile("stderr") });
    for (let call = 0; call < 20; call++) {
      expect((await execute(environment, "mcp__s__echo", { call })).result.output).toBe(`{"call":${call}}`);
    }
  });
});

describe("what is left", () => {
  test("nothing of a server's process group outlives the end, also of one that ignores the signal", async () => {
    const { mcp, environment } = await connect({ s: hostile("stubborn") });
    const { result } = await execute(environment, "mcp__s__family", {});
    const [group] = result.output.split(" ").map(Number) as [number, number];
    expect((await livingInGroup(group)).length).toBeGreaterThanOrEqual(3);
    await mcp.close();
    expect(await livingInGroup(group)).toEqual([]);
  });

  test("nothing of a server that died is left either", async () => {
    const { environment } = await connect({ s: hostile("plain") });
    const { result } = await execute(environment, "mcp__s__family", {});
    const [group] = result.output.split(" ").map(Number) as [number, number];
    await execute(environment, "mcp__s__die", {});
    await until(async () => expect(await livingInGroup(group)).toEqual([]));
  });

  test("after the end calls are answered at once", async () => {
    const { mcp, environment } = await connect({ s: hostile("plain") });
    await mcp.close();
    const { result } = await execute(environment, "mcp__s__echo", {});
    expect(result).toMatchObject({ stop_reason: "failed", output: expect.stringMatching(/not connected/) });
  });
});

test("a server's environment is what it is configured with, and what it takes to be found", async () => {
  vi.stubEnv("OMNID_TEST_SECRET", "s3cr3t-of-the-server");
  const { environment } = await connect({ s: { ...hostile("plain"), env: { GIVEN: "yes" } } });
  vi.unstubAllEnvs();
  const { result } = await execute(environment, "mcp__s__env", {});
  const given = Object.keys(JSON.parse(result.output));
  // The shell that starts it sets these by itself.
  expect(given.filter((name) => !["PWD", "OLDPWD", "SHLVL", "_"].includes(name)).sort()).toEqual([
    "GIVEN",
    "HOME",
    "PATH",
  ]);
});
