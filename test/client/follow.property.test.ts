// Following a real server through a network that breaks: whatever happens on the way, every step is in order, and the view
// ends equal to what the server has.

import fc from "fast-check";
import { expect, test } from "vitest";
import { createClient, type FollowStep } from "../../src/client/index.js";
import { startRealServer } from "../support/real-server.js";
import { fault, startFlakyProxy } from "./flaky-proxy.js";
import { until } from "./until.js";

const prompt = fc.constantFrom(
  "Which files are here?",
  "/run echo hi; echo there",
  "/parallel echo a && echo b",
  "/subagent /run echo hi",
  "/subagent Say something",
  "/think about it",
  "/fail",
);
const action = fc.oneof(
  { weight: 5, arbitrary: prompt.map((input) => ({ do: "queue" as const, input })) },
  { weight: 1, arbitrary: fc.constant({ do: "steer" as const, input: "and another thing" }) },
  { weight: 1, arbitrary: fc.constant({ do: "abort" as const, input: "" }) },
);

/** Holds every step to what it promises. */
class Watcher {
  readonly faults: string[] = [];
  #last: { epoch: string; seq: number } | undefined;
  #ids = new Set<string>();

  take(step: FollowStep): void {
    const { view } = step;
    if (step.type === "history") this.#last = placeOf(step.page.cursor);
    if (step.type === "message" && view.cursor === step.id && view.stale === null) this.#message(step.id ?? "");
    const keys = [...view.messages, ...view.fragments].map(({ key }) => key);
    if (new Set(keys).size !== keys.length) this.faults.push(`a key stands twice after ${step.type}`);
  }

  #message(id: string): void {
    const place = placeOf(id);
    const last = this.#last;
    // One that was seen before leaves the view, and its cursor, as they are.
    if (last?.epoch === place.epoch && last.seq === place.seq) return;
    if (last?.epoch !== place.epoch || last.seq + 1 !== place.seq) this.faults.push(`${id} after ${last?.seq}`);
    if (this.#ids.has(id)) this.faults.push(`${id} twice`);
    this.#ids.add(id);
    this.#last = place;
  }
}

function placeOf(id: string): { epoch: string; seq: number } {
  const [epoch = "", seq] = id.split("-");
  return { epoch, seq: Number(seq) };
}

const RUN_MS = 60_000;

test.each([
  ["with a replay buffer that holds all", {}],
  ["with one that soon forgets", { OMNID_REPLAY_EVENTS: "12" }],
])(
  "a view through a network that cuts, hangs, repeats and refuses ends as the server has it, %s",
  // A run takes a second or two, and many times that on a busy machine; one that waits for ever is told with its seed.
  { timeout: 8 * RUN_MS },
  async (_, env) => {
    const server = await startRealServer({
      OMNID_HEARTBEAT_MS: "50",
      OMNID_DEMO_DELAY_MS: "1",
      OMNID_RETRY_BASE_MS: "1",
      OMNID_RETRY_LIMIT: "1",
      ...env,
    });
    const port = Number(new URL(server.url).port);
    const direct = createClient({ baseUrl: server.url });
    await fc.assert(
      fc.asyncProperty(
        fc.array(action, { minLength: 2, maxLength: 6 }),
        fc.array(fault, { minLength: 10, maxLength: 40 }),
        fc.integer({ min: 2, max: 30 }),
        async (actions, plan, pageSize) => {
          const proxy = await startFlakyProxy(port, plan);
          const { sessionId } = await direct.sessions.create();
          const session = direct.session(sessionId);
          const watcher = new Watcher();
          const quick = { backoff: { baseMs: 1, maxMs: 8 }, silenceMs: 250 };
          const subject = createClient({ baseUrl: proxy.url })
            .session(sessionId)
            .follow({ pageSize, ...quick });
          const iterated = (async () => {
            for await (const step of subject) watcher.take(step);
          })();
          // Somebody else's tab, on a network that works, allows everything.
          const other = session.follow();
          other.subscribe(() => {
            for (const open of other.view.approvals) void direct.decide(open, "allow").catch(() => {});
          });
          try {
            const tasks: string[] = [];
            for (const { do: what, input } of actions) {
              if (what === "abort") await session.abort();
              else tasks.push((await session.submit({ input, whenBusy: what })).taskId);
            }
            for (const task of tasks) while ((await session.task(task)).state !== "ended");
            proxy.heal();
            const { messages, cursor } = await session.messages();
            const view = await until(subject, ({ cursor: at, gap, stale, children, confirmed, task }) => {
              const isWhole = Object.values(children).every(({ isRead, isBehind }) => isRead && !isBehind);
              return (
                at === cursor &&
                gap === null &&
                stale === null &&
                isWhole &&
                confirmed === messages.length &&
                task?.state === "idle"
              );
            });
            expect(watcher.faults).toEqual([]);
            const records = messages.map(({ ordinal: _ordinal, ...message }) => message);
            expect(view.messages.map(({ message }) => message)).toEqual(records.slice(view.first));
            expect(view).toMatchObject({ fragments: [], approvals: [], task: { state: "idle" } });
            while (subject.view.nextBefore !== null) await subject.loadEarlier().catch(() => {});
            expect(subject.view.messages.map(({ message }) => message)).toEqual(records);
            for (const [child, { before, since }] of Object.entries(subject.view.children)) {
              const theirs = await direct.session(child).messages();
              expect(bare([...before, ...since].map(({ message }) => message))).toEqual(bare(theirs.messages));
            }
          } finally {
            subject.close();
            other.close();
            await iterated;
            await proxy.close();
          }
        },
      ),
      { numRuns: 8, endOnFailure: true, timeout: RUN_MS },
    );
  },
);

/** Without ordinals and chains. */
const bare = (messages: readonly { timestamp: string; type: string; payload: object }[]) =>
  messages.map(({ timestamp, type, payload }) => ({ timestamp, type, payload }));
