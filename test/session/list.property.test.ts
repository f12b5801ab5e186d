// The list of Sessions says what the records on disk say, after whatever was done to them by clients, by a process that
// ended anywhere, and by a person in the data directory while no server ran.

import fc from "fast-check";
import { expect, test } from "vitest";
import type { SessionManager } from "../../src/session/session-manager.js";
import type { SessionView } from "../../src/session/types.js";
import { DATA } from "../support/crash-life.js";
import { faultAt, hurriedClock, makeWorkspace, plainModel } from "../support/crash-world.js";
import { hostOn, recordsOf, tempDir } from "../support/sessions.js";
import { MemoryFs } from "../trace/support.js";

/** How a Session may stand; undefined: it is gone. More than one after a call that nobody had an answer to. */
type Standing = { title: string | null; archived: boolean } | undefined;

/** What a person does with a folder. */
type Tampering = "copyFolder" | "dropFolder" | "cutRecord" | "dropRecord";

type Step =
  | { do: "create"; title: string }
  | { do: "patch"; which: number; title: string; archived: boolean }
  | { do: "say" | "remove" | Tampering; which: number }
  | { do: "restart" }
  /** The process ends at the change after so many, in the steps that follow. */
  | { do: "kill"; after: number; done: boolean; part: number };

const which = fc.nat(20);
const title = fc.constantFrom("a", "b", "c", "d");
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("create" as const), title }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("patch" as const), which, title, archived: fc.boolean() }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom("say" as const, "say" as const, "remove" as const), which }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom<Tampering[]>("copyFolder", "dropFolder", "cutRecord", "dropRecord"),
      which,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("kill" as const),
      after: fc.nat(12),
      done: fc.boolean(),
      part: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  },
);

class World {
  disk = new MemoryFs();
  readonly known = new Map<string, Standing[]>();
  /** Prompts that were taken. */
  readonly said = new Map<string, number>();
  readonly #workspace = makeWorkspace(tempDir());
  #host: SessionManager | undefined;
  #isDead = false;
  #copies = 0;

  async run(step: Step): Promise<void> {
    if (this.#isDead && step.do !== "kill") await this.restart();
    switch (step.do) {
      case "create":
        return this.#create(step.title);
      case "patch":
        return this.#patch(this.#pick(step.which), step);
      case "say":
        return this.#say(this.#pick(step.which));
      case "remove":
        return this.#remove(this.#pick(step.which));
      case "restart":
        return this.restart();
      case "kill":
        faultAt(this.disk, step.after, { kind: "crash", done: step.done, part: step.part }, () => {
          this.#isDead = true;
        });
        return;
      default: {
        const { do: how, which: index } = step;
        return this.restart(() => this.#tamper(how, this.#pick(index)));
      }
    }
  }

  /** Ends the process, in order where it lives, and begins the next on what it left. */
  async restart(meanwhile: () => Promise<void> = async () => {}): Promise<void> {
    const left = this.disk;
    if (!this.#isDead) left.plan = () => undefined;
    await this.#host?.drain(0).catch(() => {}); // A dead one cannot write its last.
    this.disk = left.afterKill();
    this.#isDead = false;
    await meanwhile();
    this.#host = await hostOn({ model: plainModel(), fs: this.disk, dataDir: DATA, clock: hurriedClock() });
    await this.expectList();
  }

  async end(): Promise<void> {
    await this.#host?.drain(0).catch(() => {});
  }

  async expectList(): Promise<void> {
    const host = this.#host as SessionManager;
    const listed = await listAll(host);
    const times = listed.map(({ lastActiveAt }) => lastActiveAt);
    expect(times).toEqual([...times].sort().reverse());
    const byId = new Map(listed.map((view) => [view.sessionId, view]));
    for (const view of listed) this.known.set(view.sessionId, this.known.get(view.sessionId) ?? [standingOf(view)]);
    for (const [id, standings] of this.known) {
      const view = byId.get(id);
      expect([id, standings]).toEqual([id, expect.arrayContaining([view && standingOf(view)])]);
      // From now on it is known.
      this.known.set(id, [view && standingOf(view)]);
      const session = await host.find(id, null);
      expect([id, session && brief(session.view())]).toEqual([id, view && brief(view)]);
      if (session === undefined) continue;
      const prompts = (await recordsOf(session)).filter(({ payload }) => "role" in payload && payload.role === "user");
      expect(prompts.length).toBeGreaterThanOrEqual(this.said.get(id) ?? 0);
    }
  }

  #pick(index: number): string | undefined {
    const there = [...this.known].filter(([, standings]) => standings.some((each) => each !== undefined));
    return there[index % there.length]?.[0];
  }

  async #create(named: string): Promise<void> {
    const made = await settled(this.#host?.create({ workspace: this.#workspace, title: named }, null));
    // Of one that nobody heard of, the next list tells.
    if (made?.ok) this.known.set(made.value.id, [{ title: named, archived: false }]);
  }

  async #patch(
    id: string | undefined,
    { title: named, archived }: { title: string; archived: boolean },
  ): Promise<void> {
    const session = id && (await settled(this.#host?.find(id, null)));
    if (!id || !session) return;
    const answer = await settled(session.patch({ title: named, archived }));
    const after = { title: named, archived };
    this.known.set(id, answer?.ok ? [after] : [...(this.known.get(id) ?? []), after]);
  }

  async #say(id: string | undefined): Promise<void> {
    const session = id && (await settled(this.#host?.find(id, null)));
    if (!id || !session) return;
    const answer = await settled(session.submit("go on", {}));
    if (!answer?.ok) return;
    this.said.set(id, (this.said.get(id) ?? 0) + 1);
    await session.settled();
  }

  async #remove(id: string | undefined): Promise<void> {
    if (id === undefined) return;
    const isRemoved = await settled(this.#host?.remove(id, null));
    this.known.set(id, isRemoved === true ? [undefined] : [...(this.known.get(id) ?? []), undefined]);
  }

  async #tamper(how: Tampering, id: string | undefined): Promise<void> {
    if (id === undefined) return;
    const folder = `${DATA}/sessions/${id}`;
    const files = this.disk.paths().filter((path) => path.startsWith(`${folder}/`));
    if (files.length === 0) return;
    const rebuilt = { title: null, archived: false };
    if (how === "dropFolder") {
      await this.disk.remove(folder);
      this.known.set(id, [undefined]);
    } else if (how === "dropRecord") {
      await this.disk.remove(`${folder}/session.json`);
      this.known.set(id, [rebuilt]);
    } else if (how === "cutRecord") {
      if (!files.includes(`${folder}/session.json`)) return;
      const file = this.disk.file(`${folder}/session.json`);
      file.bytes = file.bytes.subarray(0, file.bytes.length >> 1);
      this.known.set(id, [rebuilt]);
    } else {
      this.#copies += 1;
      const copy = `copy-${this.#copies}`;
      await this.disk.makeFolder(`${DATA}/sessions/${copy}`);
      for (const path of files) {
        const file = await this.disk.create(path.replace(folder, `${DATA}/sessions/${copy}`));
        await file.write(this.disk.file(path).bytes);
        await file.close();
      }
      // Its record tells of the other Session.
      this.known.set(copy, [rebuilt]);
    }
  }
}

/** @returns undefined where the process is dead. */
async function settled<T>(answer: Promise<T> | undefined): Promise<T | undefined> {
  try {
    return await answer;
  } catch {
    // Nobody has the answer.
    return undefined;
  }
}

async function listAll(host: SessionManager): Promise<SessionView[]> {
  const views: SessionView[] = [];
  let cursor: string | undefined;
  do {
    const page = await host.list({ limit: 3, archived: true, ...(cursor === undefined ? {} : { cursor }) }, null);
    if (!page.ok) throw new Error(page.message);
    views.push(...page.value.sessions);
    cursor = page.value.nextCursor;
  } while (cursor !== undefined);
  return views;
}

const brief = ({ title: named, archived, lastActiveAt, createdAt, state }: SessionView) => {
  return { title: named, archived, lastActiveAt, createdAt, state };
};

const standingOf = ({ title: named, archived }: SessionView): Standing => ({ title: named, archived });

test("E11: whatever is done to Sessions, wherever the process ends and whoever moves their folders, the list is what the records say", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 25 }), async (steps) => {
      const world = new World();
      try {
        await world.restart();
        for (const each of steps) await world.run(each);
        await world.restart();
      } finally {
        await world.end();
      }
    }),
    { numRuns: Number(process.env.OMNID_RUNS ?? 40) },
  );
}, 120_000);
