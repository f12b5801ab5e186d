// Streams through real proxies. That events are not held back is told by order, not by time: the reader has one event
// before the next is made, so a proxy that waits for more to come would wait for ever.

import { describe, expect, test, vi } from "vitest";
import { figuresOf } from "../support/prometheus.js";
import { type Front, HAPROXY, NGINX, startHaproxy, startNginx } from "../support/proxies.js";
import { type Server, startOmnid } from "../support/server.js";
import { openSse } from "../support/sse-client.js";
import { finish, type Gate, gate, say, startUpstream, type Upstream } from "../support/upstream.js";
import { api, asked, at, decide, expectLawful, follow, history, makeSession, payloads, prompt } from "./api.js";

// Servers and proxies are started here, which takes its time where the machine is shared.
vi.setConfig({ testTimeout: 60_000 });

const FRONTS: { name: string; isThere: boolean; start(port: number): Promise<Front> }[] = [
  { name: "nginx as it comes", isThere: NGINX !== undefined, start: (port) => startNginx(port) },
  {
    name: "nginx with HTTP/1.0 to the server",
    isThere: NGINX !== undefined,
    start: (port) => startNginx(port, "proxy_http_version 1.0;"),
  },
  {
    name: "nginx with HTTP/1.1 to the server",
    isThere: NGINX !== undefined,
    start: (port) => startNginx(port, 'proxy_http_version 1.1; proxy_set_header Connection "";'),
  },
  {
    name: "nginx that compresses event streams",
    isThere: NGINX !== undefined,
    start: (port) => startNginx(port, "gzip on; gzip_types text/event-stream; gzip_proxied any;"),
  },
  { name: "HAProxy as it comes", isThere: HAPROXY !== undefined, start: (port) => startHaproxy(port) },
  {
    name: "HAProxy with option http-no-delay",
    isThere: HAPROXY !== undefined,
    start: (port) => startHaproxy(port, "option http-no-delay"),
  },
];

/** What a model says one by one: each piece when its gate opens. */
function stepwise(upstream: Upstream, count: number): Gate[] {
  const gates = Array.from({ length: count }, () => gate());
  upstream.script({
    steps: [...gates.flatMap((each, n) => [each, ...say(`${n} `)]), ...finish("stop")],
  });
  return gates;
}

async function behind(front: (typeof FRONTS)[number], env: Record<string, string> = {}) {
  const upstream = await startUpstream();
  const server: Server = await startOmnid({ config: upstream.config(), env });
  const proxy = await front.start(server.port);
  return { upstream, server, proxy };
}

describe.each(FRONTS)("$name", (front) => {
  test.skipIf(!front.isThere)("passes each event on before the next one is made", async () => {
    const { upstream, server, proxy } = await behind(front);
    const id = await makeSession(proxy);
    const reader = await follow(proxy, id);
    await reader.until(({ data }) => data.type === "task_state");
    const gates = stepwise(upstream, 20);
    const taskId = await prompt(proxy, id, "Step by step.");
    for (const [n, each] of gates.entries()) {
      each.open();
      await reader.untilPayload("partial_text", ({ text }) => text === `${n} `);
    }
    await reader.untilEnded(taskId);
    await expectLawful(server, id, reader.messages);
  });

  test.skipIf(!front.isThere)("carries a Task's own stream to its end, with an approval in it", async () => {
    const { proxy } = await behind(front, { OMNID_MODEL: "demo/demo" });
    const id = await makeSession(proxy, { provider: "demo", modelId: "demo" });
    const reader = await openSse(proxy.url + at(id, "/tasks"), {
      method: "POST",
      body: { input: "/run echo through" },
    });
    expect(await decide(proxy, id, await asked(reader), "allow")).toBe(204);
    await reader.ended;
    expect(reader.events.at(-1)?.data.ended).toMatchObject({ status: "completed" });
    expect(payloads(reader.messages, "tool_call_output")[0]?.output).toContain("through");
  });

  test.skipIf(!front.isThere)("lets a reader that was cut off go on where it was", async () => {
    const { upstream, server, proxy } = await behind(front);
    const id = await makeSession(proxy);
    const { cursor } = await history(proxy, id);
    const gates = stepwise(upstream, 6);
    const taskId = await prompt(proxy, id, "Step by step.");
    let lastEventId = cursor;
    const ids: string[] = [];
    for (const [n, each] of gates.entries()) {
      const reader = await follow(proxy, id, { lastEventId });
      each.open();
      await reader.untilPayload("partial_text", ({ text }) => text === `${n} `);
      reader.check();
      ids.push(...reader.ids);
      lastEventId = reader.lastEventId as string;
      reader.close();
    }
    const last = await follow(proxy, id, { lastEventId });
    await last.until(({ name, data }) => name !== undefined && data.state === "idle");
    ids.push(...last.ids);
    const head = (await history(server, id)).cursor;
    expect(ids.at(-1)).toBe(head);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toHaveLength(Number(head.split("-")[1]) - Number(cursor.split("-")[1]));
    expect((await api(proxy, "GET", at(id, `/tasks/${taskId}`))).body.state).toBe("ended");
  });

  test.skipIf(!front.isThere)("answers HEAD and OPTIONS without a reader, and lets one go that has gone", async () => {
    // HAProxy finds out with the next bytes for its client, unless `option abortonclose` is set.
    const { server, proxy } = await behind(front, { OMNID_HEARTBEAT_MS: "200" });
    const id = await makeSession(proxy);
    for (const path of [at(id, "/stream"), "/api/events"]) {
      const head = await fetch(proxy.url + path, { method: "HEAD" });
      expect([head.status, head.headers.get("content-type")]).toEqual([200, "text/event-stream; charset=utf-8"]);
      expect((await fetch(proxy.url + path, { method: "OPTIONS" })).status).toBe(204);
    }
    const none = await figuresOf(server);
    expect([none.of("omnid_readers"), none.of("omnid_streams")]).toEqual([0, 0]);
    const reader = await follow(proxy, id);
    await reader.until(({ data }) => data.type === "task_state");
    expect((await figuresOf(server)).of("omnid_readers")).toBe(1);
    reader.close();
    await expect.poll(async () => (await figuresOf(server)).of("omnid_readers"), { timeout: 20_000 }).toBe(0);
  });

  test.skipIf(!front.isThere)(
    "passes the server's farewell on as the last event, and the end of the stream",
    async () => {
      const { server, proxy } = await behind(front);
      const id = await makeSession(proxy);
      const reader = await follow(proxy, id);
      await reader.until(({ data }) => data.type === "task_state");
      const { code } = await server.stop("SIGTERM");
      await reader.ended;
      expect(code).toBe(0);
      expect(reader.events.at(-1)?.data).toMatchObject({ type: "shutdown" });
    },
  );
});

test.skipIf(NGINX === undefined)(
  "a silent stream outlives nginx's patience, since it is not silent for that long",
  async () => {
    const server = await startOmnid({ env: { OMNID_HEARTBEAT_MS: "100" } });
    const proxy = await startNginx(server.port, "proxy_read_timeout 1s;");
    const id = await makeSession(proxy);
    const abort = new AbortController();
    const response = await fetch(proxy.url + at(id, "/stream"), { signal: abort.signal });
    let text = "";
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += piece;
      // Twice that long.
      if (text.split(": ping\n").length > 20) break;
    }
    expect(text.split(": ping\n").length).toBeGreaterThan(20);
    abort.abort();
  },
);

test.skipIf(NGINX === undefined)(
  "a browser-like client that takes gzip gets each event unpacked before the next is made",
  async () => {
    const { upstream, proxy } = await behind(FRONTS[3] as (typeof FRONTS)[number]);
    const id = await makeSession(proxy);
    const gates = stepwise(upstream, 10);
    await prompt(proxy, id, "Step by step.");
    const abort = new AbortController();
    const response = await fetch(proxy.url + at(id, "/stream"), {
      headers: { "accept-encoding": "gzip", accept: "text/event-stream" },
      signal: abort.signal,
    });
    let text = "";
    let opened = 0;
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += piece;
      if (opened > 0 && !text.includes(`"text":"${opened - 1} "`)) continue;
      if (opened === gates.length) break;
      gates[opened++]?.open();
    }
    expect(opened).toBe(gates.length);
    abort.abort();
  },
);
