// Recorded streams of real providers through the whole server: bytes in at one end, events out at the other.

import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { atFileEnd } from "../support/at-file-end.js";
import { type Server, startOmnid } from "../support/server.js";
import { openSse } from "../support/sse-client.js";
import { answer, startUpstream, type Upstream } from "../support/upstream.js";
import { api, at, expectLawful, expectPaired, makeSession, payloads } from "./api.js";

// Servers are started and restarted here, which takes its time where the machine is shared.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

const folder = resolve(process.env.OMNID_FIXTURES ?? "../shared/fixtures", "providers");
const isThere = existsSync(join(folder, "INDEX.json"));
if (!isThere) console.warn(`recorded provider streams are skipped: no ${folder}/INDEX.json`);

interface Recorded {
  id: string;
  protocol: string;
  file: string;
  http: { status: number; headers?: Record<string, string> };
  expect: {
    status: string;
    status_acceptable: string[];
    text?: string;
    thinking?: string;
    tool_calls?: { name: string; arguments: string; arguments_value?: unknown }[];
    usage?: Record<string, number> | null;
    refusal?: string;
  };
}

const files: Recorded[] = isThere ? JSON.parse(readFileSync(join(folder, "INDEX.json"), "utf8")).files : [];
const streams = files.filter(({ id }) => id.startsWith("openai-chat/"));
const errors = files.filter(({ id, protocol }) => id.startsWith("http-errors/") && protocol === "openai-chat");

/** The bytes in pieces whose sizes follow no boundary of anything. */
function pieces(bytes: Buffer): Buffer[] {
  const list: Buffer[] = [];
  for (let from = 0, size = 1; from < bytes.length; from += size, size = ((size * 7 + 3) % 191) + 1) {
    list.push(bytes.subarray(from, from + size));
  }
  return list;
}

describe.skipIf(!isThere)("recorded openai-chat", () => {
  let upstream: Upstream;
  let server: Server;
  beforeAll(async () => {
    upstream = await startUpstream(atFileEnd);
    server = await startOmnid({ atEnd: atFileEnd, config: upstream.config(), env: { OMNID_RETRY_LIMIT: "0" } });
  });

  async function play(file: Recorded) {
    const id = await makeSession(server, { approvalMode: "allow-all" });
    const before = upstream.requests.length;
    const { status, headers = {} } = file.http;
    upstream.script({ status, headers, steps: pieces(readFileSync(join(folder, file.file))) });
    // Calls name tools that are not ours: their failed outputs cause one more Request.
    if ((file.expect.tool_calls ?? []).length > 0) upstream.script(answer("Seen."));
    const reader = await openSse(server.url + at(id, "/tasks"), { method: "POST", body: { input: "Play." } });
    await reader.ended;
    const records = await expectLawful(server, id, reader.messages);
    return { id, reader, records, requests: upstream.requests.slice(before) };
  }

  test.each(streams)("B3 F10 F14: $id comes out as its index says", async (file) => {
    const { expect: right } = file;
    const { reader, requests } = await play(file);
    const [end] = payloads(reader.messages, "request_end");
    expect(right.status_acceptable).toContain(end?.status);
    const own = reader.messages.slice(
      0,
      reader.messages.findIndex(({ payload }) => "type" in payload && payload.type === "request_end"),
    );
    const text = payloads(own, "text")
      .map((payload) => payload.text)
      .join("");
    // A refusal in place of an answer is the error's text.
    if (right.refusal === undefined) expect(text).toBe(right.text ?? "");
    expect(
      payloads(own, "thinking")
        .map((payload) => payload.thinking)
        .join(""),
    ).toBe(right.thinking ?? "");
    const called = payloads(own, "tool_call").filter(({ stop_reason }) => stop_reason === undefined);
    expect(called.map(({ name, arguments: args }) => [name, args])).toEqual(
      (right.tool_calls ?? []).map(({ name, arguments: args }) => [name, args]),
    );
    const { cache_read = 0, cache_write = 0, output = 0, total = 0 } = right.usage ?? {};
    expect(payloads(reader.messages, "token_usage")[0]?.request).toMatchObject({
      cache_read,
      cache_write,
      output,
      total,
    });
    if (called.length === 0) return;
    const { messages } = requests[1]?.body ?? { messages: [] };
    expectPaired(messages);
    expect(messages.filter(({ role }) => role === "tool")).toHaveLength(called.length);
  });

  test.each(errors)(
    "F16: $id ends the Task with the status that its index says, and the Session goes on",
    async (file) => {
      const { id, reader } = await play(file);
      const [end] = payloads(reader.messages, "request_end");
      const status = file.expect.status === "auth" ? "failed" : file.expect.status;
      expect([status, ...file.expect.status_acceptable]).toContain(end?.status);
      expect(reader.events.at(-1)?.data).toMatchObject({
        state: "idle",
        ended: { status: end?.status, error: end?.error },
      });
      upstream.script(answer("Better."));
      const next = await openSse(server.url + at(id, "/tasks"), { method: "POST", body: { input: "Again." } });
      await next.ended;
      expect(next.events.at(-1)?.data.ended.status).toBe("completed");
      expect((await api(server, "GET", at(id))).body.state).toBe("idle");
    },
  );
});
