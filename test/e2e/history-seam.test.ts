// History and stream fit without a seam: a page of history, then the stream from its cursor, at any instant.

import { beforeAll, describe, expect, test, vi } from "vitest";
import { PartialAggregator } from "../../src/protocol/aggregate.js";
import { isPartial } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { atFileEnd } from "../support/at-file-end.js";
import { gated, throughAll } from "../support/gated.js";
import { type Server, startOmnid } from "../support/server.js";
import { calls, finish, say, startUpstream, think, type Upstream } from "../support/upstream.js";
import { api, at, expectLawful, follow, type History, history, makeSession, payloads, prompt } from "./api.js";

// Servers are started and restarted here, which takes its time where the machine is shared.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

let upstream: Upstream;
let server: Server;
beforeAll(async () => {
  upstream = await startUpstream(atFileEnd);
  server = await startOmnid({ atEnd: atFileEnd, config: upstream.config(), env: { OMNID_RETRY_LIMIT: "0" } });
});

/** What a client holds that took the history at some instant and follows from its cursor. */
class Joined {
  readonly page: History;
  readonly open = new PartialAggregator();
  readonly complete: OmniMessage[];
  /** Complete messages whose fragments, those of the page's `live` included, add up to them. */
  whole = 0;

  constructor(page: History) {
    this.page = page;
    this.complete = [...page.records];
    for (const fragment of page.fragments) {
      expect(fragment).toMatchObject({ payload: { event_type: "start" } });
      this.open.push(fragment);
    }
  }

  push(message: OmniMessage): void {
    if (isPartial(message)) {
      const made = this.open.push(message);
      if (made !== undefined) this.#made.push(made);
      return;
    }
    const made = this.#made.shift();
    if (made !== undefined) {
      const {
        type,
        role,
        fidelity: _,
        exit_code: __,
        ...content
      } = message.payload as unknown as Record<string, unknown>;
      expect(made.payload).toMatchObject({ type, role, ...content });
      this.whole += 1;
    }
    this.complete.push(message);
  }

  readonly #made: OmniMessage[] = [];
}

test("A18: at each of 200 deltas, and at every stop, history and stream give the whole and nothing twice", async () => {
  const id = await makeSession(server, { approvalMode: "allow-all" });
  const whole = await follow(server, id);
  const words = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}${index} `);
  const first = gated({
    steps: [
      ...think(...words("t", 60)),
      ...say(...words("s", 80)),
      ...calls({ id: "c", name: "exec_command", args: { cmd: "seq 3" } }).steps,
    ],
  });
  const second = gated({ steps: [...say(...words("z", 60)), ...finish("stop")] });
  upstream.script(first.script, second.script);
  const taskId = await prompt(server, id, "Slowly.");

  const pages: History[] = [];
  await throughAll(whole, [...first.gates, ...second.gates], async () => pages.push(await history(server, id)));
  await whole.untilEnded(taskId);
  const final = await expectLawful(server, id, whole.messages);
  expect(pages.length).toBeGreaterThan(400);
  expect(pages.filter(({ fragments }) => fragments.length > 0).length).toBeGreaterThan(100);

  let compared = 0;
  for (const page of pages) {
    const seq = Number(page.cursor.split("-")[1]);
    const client = new Joined(page);
    for (const message of whole.messages.slice(seq)) client.push(message);
    expect(client.complete).toEqual(final);
    expect(client.open.isEmpty).toBe(true);
    compared += client.whole;
  }
  expect(compared).toBeGreaterThan(pages.length);
  // The server replays from such a cursor what the uncut reader saw.
  for (const page of pages.filter((_, index) => index % 40 === 0)) {
    const reader = await follow(server, id, { lastEventId: page.cursor });
    await reader.until(({ name }) => name !== undefined);
    expect(reader.messages).toEqual(whole.messages.slice(Number(page.cursor.split("-")[1])));
    reader.close();
  }
});

test("the cursor of a page that is read while a tool floods fits the stream that is opened behind it", async () => {
  const id = await makeSession(server, { approvalMode: "allow-all" });
  const whole = await follow(server, id);
  upstream.script(
    calls({
      id: "flood",
      name: "exec_command",
      args: { cmd: "for i in $(seq 300); do echo $i; done; sleep 0.2; seq 300" },
    }),
    {
      steps: [...say("ok"), ...finish("stop")],
    },
  );
  const taskId = await prompt(server, id, "Flood.");
  let isOver = false;
  const over = whole.untilEnded(taskId).then(() => {
    isOver = true;
  });
  const joins: { page: History; messages: OmniMessage[] }[] = [];
  while (!isOver && joins.length < 60) {
    const page = await history(server, id);
    const reader = await follow(server, id, { lastEventId: page.cursor });
    joins.push({ page, messages: reader.messages });
  }
  await over;
  const final = await expectLawful(server, id, whole.messages);
  const end = (await history(server, id)).cursor;
  for (const { page, messages } of joins) {
    const client = new Joined(page);
    const due = Number(end.split("-")[1]) - Number(page.cursor.split("-")[1]);
    expect(messages.length).toBeLessThanOrEqual(due);
    for (const message of whole.messages.slice(Number(page.cursor.split("-")[1]))) client.push(message);
    expect(client.complete).toEqual(final);
  }
});

describe("pages of a long history", () => {
  let id: string;
  let all: OmniMessage[];
  beforeAll(async () => {
    id = await makeSession(server, { provider: "demo", modelId: "demo" });
    for (const input of ["one", "two", "three"]) {
      const response = await fetch(server.url + at(id, "/tasks"), {
        method: "POST",
        headers: { accept: "text/event-stream", "content-type": "application/json" },
        body: JSON.stringify({ input }),
      });
      await response.text();
    }
    all = (await history(server, id)).records;
  });

  const page = async (query: string) => (await api(server, "GET", at(id, `/messages?${query}`))).body;

  test("walking back by nextBefore, and forward by after, gives every record once", async () => {
    const back: unknown[] = [];
    let query = "limit=4";
    for (;;) {
      const { messages, nextBefore } = await page(query);
      back.unshift(...messages);
      if (nextBefore === undefined) break;
      query = `limit=4&before=${nextBefore}`;
    }
    expect(back).toMatchObject(all);
    expect((await page("after=2")).messages).toMatchObject(all.slice(3));
    expect((await page(`after=${all.length}`)).messages).toEqual([]);
    expect((await page("before=0")).messages).toEqual([]);
    expect((await page("limit=1000&context=current")).messages).toHaveLength(all.length);
  });

  test("the Prompt is in the history and not on the stream, and `records` tells a reader where it stands", async () => {
    const reader = await follow(server, id);
    const taskId = await prompt(server, id, "four");
    const end = await reader.untilEnded(taskId);
    const running = reader.serverEvents("task_state").find(({ state }) => state === "running");
    const { messages } = await page(`after=${all.length - 1}&before=${running.records}`);
    expect(messages).toMatchObject([{ payload: { type: "text", role: "user", text: "four" } }]);
    expect(payloads(reader.messages, "text").filter(({ role }) => role === "user")).toEqual([]);
    expect(end.data.records).toBe((await history(server, id)).records.length);
  });

  test.each(["limit=0", "limit=1001", "limit=x", "before=-1", "after=1.5", "context=all"])(
    "?%s is refused with what is wrong",
    async (query) => {
      const refused = await api(server, "GET", at(id, `/messages?${query}`));
      expect(refused).toMatchObject({ status: 400, body: { error: { code: "invalid_request" } } });
      expect(refused.body.error.details[0].path).toContain(query.split("=")[0]);
    },
  );
});
