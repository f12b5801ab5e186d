// HTTP servers that break the rules. They speak raw JSON-RPC over node:http.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { gzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { hostile } from "../support/mcp-servers.js";
import { begin, connect } from "./mcp-support.js";
import { execute, HandClock } from "./support.js";

const until = <T>(look: () => T | Promise<T>) => vi.waitFor(look, { timeout: 20_000, interval: 20 });

interface Rpc {
  id?: number;
  method: string;
  params?: { protocolVersion?: string; name?: string };
}
type Handler = (rpc: Rpc, response: ServerResponse, request: IncomingMessage) => void;

interface Hostile {
  spec: { url: string; headers: Record<string, string> };
  seen: { method: string; headers: IncomingMessage["headers"]; rpc?: Rpc }[];
  /** The answers that are not over. */
  open(): number;
}

const json = (response: ServerResponse, rpc: Rpc, result: unknown) =>
  response
    .writeHead(200, { "content-type": "application/json", "mcp-session-id": "session" })
    .end(JSON.stringify({ jsonrpc: "2.0", id: rpc.id, result }));

const greeting = { capabilities: { tools: {} }, serverInfo: { name: "hostile", version: "1" } };

const tooDeep = ({ id }: Rpc): string =>
  `{"id":${id},"jsonrpc":"2.0","result":{"content":[],"structuredContent":${"[".repeat(1_000_000)}${"]".repeat(1_000_000)}}}`;

/** A server that is fine, but for a call of its tool, a GET and what else `odd` takes over. */
async function serve(
  onCall: Handler,
  odd: { get?: Handler; initialize?: Handler; headers?: Record<string, string> } = {},
): Promise<Hostile> {
  const seen: Hostile["seen"] = [];
  let open = 0;
  const server = createServer((request, response) => {
    void (async () => {
      let text = "";
      for await (const piece of request) text += piece;
      const rpc = text === "" ? undefined : (JSON.parse(text) as Rpc);
      seen.push({ method: request.method ?? "", headers: request.headers, ...(rpc === undefined ? {} : { rpc }) });
      open += 1;
      response.once("close", () => {
        open -= 1;
      });
      if (request.method === "DELETE") return response.writeHead(200).end();
      if (rpc === undefined)
        return (odd.get ?? ((_, res) => res.writeHead(405).end()))({ method: "" }, response, request);
      if (rpc.id === undefined) return response.writeHead(202).end();
      if (rpc.method === "initialize") {
        if (odd.initialize !== undefined) return odd.initialize(rpc, response, request);
        return json(response, rpc, { ...greeting, protocolVersion: rpc.params?.protocolVersion });
      }
      if (rpc.method === "tools/list")
        return json(response, rpc, { tools: [{ name: "odd", inputSchema: { type: "object" } }] });
      return onCall(rpc, response, request);
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp?key=in-the-address`;
  return { spec: { url, headers: odd.headers ?? {} }, seen, open: () => open };
}

const events = (response: ServerResponse) => response.writeHead(200, { "content-type": "text/event-stream" });

const run = async (server: Hostile) => {
  const connected = await connect({ s: server.spec });
  return { ...connected, ...(await execute(connected.environment, "mcp__s__odd", {})) };
};

test("the configured headers go with every request, and a connection that ends is taken leave of", async () => {
  const server = await serve((rpc, response) => json(response, rpc, { content: [{ type: "text", text: "ok" }] }), {
    headers: { authorization: "Bearer t0ken-of-the-server" },
  });
  const { mcp, result } = await run(server);
  expect(result.output).toBe("ok");
  await mcp.close();
  for (const { headers } of server.seen) expect(headers.authorization).toBe("Bearer t0ken-of-the-server");
  expect(server.seen.at(-1)).toMatchObject({ method: "DELETE", headers: { "mcp-session-id": "session" } });
});

describe("an answer", () => {
  const failed: [string, Handler, RegExp][] = [
    ["500", (_, response) => response.writeHead(500).end("broken"), /broken/],
    ["401", (_, response) => response.writeHead(401).end("who are you"), /who are you/],
    [
      "another kind of content",
      (_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<h1>"),
      /content type/,
    ],
    ["a batch", (_, response) => response.writeHead(200, { "content-type": "application/json" }).end("[]"), /batch/],
    [
      "more than fits",
      (_, response) =>
        response.writeHead(200, { "content-type": "application/json" }).end(`{"a":"${"x".repeat(12_000_000)}"}`),
      /more than 10485760 bytes/,
    ],
    [
      "an event without end",
      (_, response) => {
        events(response);
        for (let n = 0; n < 12; n++) response.write(`data: ${"x".repeat(1_000_000)}\n`);
      },
      /more than 10485760 bytes/,
    ],
    [
      "lists without end, compressed",
      (_, response) =>
        response
          .writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" })
          .end(gzipSync("[".repeat(50_000_000))),
      /more than 10485760 bytes/,
    ],
    [
      "a batch behind blanks",
      (_, response) => {
        response.writeHead(200, { "content-type": "application/json" }).write(" \n");
        setImmediate(() => response.end("[]"));
      },
      /batch/,
    ],
    [
      "an event of a million lines",
      (_, response) => void events(response).end(`${":\n".repeat(1_000_000)}\n`),
      /an event of more than 10000 lines/,
    ],
    [
      "an event that parsers would read in two ways",
      (rpc, response) => void events(response).end(`id: "\rdata: ${tooDeep(rpc)}\n\n`),
      /carriage returns/,
    ],
    ["a broken connection", (_, response) => response.socket?.resetAndDestroy(), /lost|cannot be reached/],
    [
      "an error page without end",
      (_, response) => {
        response.writeHead(500);
        const pour = () => {
          while (!response.destroyed && response.write("x".repeat(65_536)));
          response.once("drain", pour);
        };
        pour();
      },
      /./,
    ],
  ];
  test.each(failed)("of %s is a failed output", async (_what, onCall, output) => {
    const { result } = await run(await serve(onCall));
    expect(result).toMatchObject({ stop_reason: "failed", output: expect.stringMatching(output) });
    expect(result.output).not.toContain("in-the-address");
  });

  test.each<[string, Handler]>([
    ["a body", (rpc, response) => response.writeHead(200, { "content-type": "application/json" }).end(tooDeep(rpc))],
    ["an event", (rpc, response) => void events(response).end(`event: message\ndata: ${tooDeep(rpc)}\n\n`)],
    [
      "an event of many lines",
      (rpc, response) => void events(response).end(`${tooDeep(rpc).replaceAll(/^|,/g, "$&\r\ndata:")}\r\n\r\n`),
    ],
  ])(
    "that nests without end as %s is not parsed: the call fails, and the connection goes on",
    async (_what, onCall) => {
      const { result, lines, mcp } = await run(await serve(onCall));
      expect(result).toMatchObject({
        stop_reason: "failed",
        output: expect.stringMatching(/the answer nests 1000002 levels deep, limit 200/),
      });
      expect(lines.filter(({ level }) => level === "warn")).toEqual([]);
      expect(mcp.figures.connected).toBe(1);
    },
  );

  test("that never comes is a time-out, and the server is told", async () => {
    const server = await serve(() => {});
    const clock = new HandClock();
    const { environment } = begin({ s: server.spec }, clock);
    await until(() => expect(environment.definitions()).not.toEqual([]));
    const ran = execute(environment, "mcp__s__odd", {});
    await until(() => expect(server.seen.some(({ rpc }) => rpc?.method === "tools/call")).toBe(true));
    clock.advance(120_000);
    expect((await ran).result.stop_reason).toBe("timeout");
    await until(() => expect(server.seen.at(-1)?.rpc?.method).toBe("notifications/cancelled"));
  });
});

describe("an address that sends us elsewhere does not get to see the headers there", () => {
  const to =
    (status: number, target: { spec: { url: string } }): Handler =>
    (_, response) =>
      response.writeHead(status, { location: target.spec.url }).end();
  const headers = { "x-api-key": "t0ken-of-the-server" };

  test.each([301, 302, 303, 307, 308])("in the answer to the first message: %d", async (status) => {
    const elsewhere = await serve(() => {});
    const server = await serve(() => {}, { headers, initialize: to(status, elsewhere) });
    const { lines } = await connect({ s: server.spec });
    expect(lines.find(({ level }) => level === "warn")?.details.reason).toMatch(/Redirect to .* not followed/);
    expect(elsewhere.seen).toEqual([]);
  });

  test("in the answer to a call, and where it is asked for a stream", async () => {
    const elsewhere = await serve(() => {});
    const server = await serve(to(307, elsewhere), { headers, get: to(302, elsewhere) });
    const { result } = await run(server);
    expect(result).toMatchObject({
      stop_reason: "failed",
      output: expect.stringMatching(/Redirect to .* not followed/),
    });
    await until(() => expect(server.seen.some(({ method }) => method === "GET")).toBe(true));
    expect((await run(server)).result.stop_reason).toBe("failed");
    expect(elsewhere.seen).toEqual([]);
  });

  test("and one that only moved on its own host does", async () => {
    let isMoved = false;
    const server = await serve((rpc, response) => json(response, rpc, { content: [{ type: "text", text: "ok" }] }), {
      headers,
      initialize: (rpc, response) => {
        if (isMoved) return json(response, rpc, { ...greeting, protocolVersion: rpc.params?.protocolVersion });
        isMoved = true;
        response.writeHead(308, { location: "/moved" }).end();
      },
    });
    expect((await run(server)).result.output).toBe("ok");
    for (const seen of server.seen) expect(seen.headers["x-api-key"]).toBe("t0ken-of-the-server");
  });
});

test("a first answer that trickles is given up like one that never comes", async () => {
  const server = await serve(() => {}, {
    initialize: (_, response) => {
      response.writeHead(200, { "content-type": "application/json" }).write(" ");
      const drip = setInterval(() => response.write(" "), 5);
      response.once("close", () => clearInterval(drip));
    },
  });
  const clock = new HandClock();
  const { lines } = begin({ s: server.spec }, clock);
  await until(() => {
    clock.advance(1_000);
    expect(lines.find(({ level }) => level === "warn")?.details.reason).toMatch(/did not answer within 60 s/);
  });
  await until(() => expect(server.open()).toBe(0));
});

test("an answer to the first message that never comes holds up nobody", async () => {
  const server = await serve(() => {}, { initialize: () => {} });
  const { mcp, environment } = await connect({ s: server.spec, good: hostile("plain") });
  expect(mcp.figures.connected).toBe(1);
  expect((await execute(environment, "mcp__good__echo", {})).result.output).toBe("{}");
});

test("a stream that ends as soon as it is opened is not opened in a loop", async () => {
  const opened: number[] = [];
  const server = await serve(() => {}, {
    get: (_, response) => {
      opened.push(performance.now());
      events(response).end("retry: 0\n\nid: 1\ndata: \n\n");
    },
  });
  await connect({ s: server.spec });
  await until(() => expect(opened).toHaveLength(4));
  expect((opened[3] as number) - (opened[2] as number)).toBeGreaterThan(1_000);
});

test("a flood of events slows its own server, not this process", async () => {
  const event = 'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"x"}}\n\n'.repeat(500);
  const server = await serve((rpc, response) => json(response, rpc, { content: [{ type: "text", text: "ok" }] }), {
    get: (_, response) => {
      events(response);
      const pour = () => {
        if (!response.destroyed && response.write(event)) setImmediate(pour);
        else response.once("drain", pour);
      };
      pour();
    },
  });
  const { environment } = await connect({ flood: server.spec, good: hostile("plain") });
  const delay = monitorEventLoopDelay({ resolution: 5 });
  delay.enable();
  for (let call = 0; call < 200; call++) {
    expect((await execute(environment, "mcp__good__echo", { call })).result.output).toBe(`{"call":${call}}`);
  }
  delay.disable();
  expect(delay.percentile(99) / 1e6).toBeLessThan(250);
  expect((await execute(environment, "mcp__flood__odd", {})).result.output).toBe("ok");
});

test("a server that never ends the answers of aborted calls is connected to anew before they pile up", async () => {
  const server = await serve((_, response) => void events(response).flushHeaders());
  const { environment, lines } = await connect({ s: server.spec });
  for (let round = 0; round < 6; round++) {
    const aborts = Array.from({ length: 50 }, () => new AbortController());
    const calls = aborts.map(({ signal }) => execute(environment, "mcp__s__odd", {}, { signal }));
    const made = () => server.seen.filter(({ rpc }) => rpc?.method === "tools/call").length;
    await until(() => expect(made() >= (round + 1) * 50 || lines.some(({ level }) => level === "warn")).toBe(true));
    for (const abort of aborts) abort.abort();
    await Promise.all(calls);
  }
  await until(() =>
    expect(lines.find(({ level }) => level === "warn")?.details.reason).toMatch(/holds 256 answers open/),
  );
  await until(() => expect(server.open()).toBeLessThan(100));
});
