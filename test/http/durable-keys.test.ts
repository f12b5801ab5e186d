// Keys over a disk that can fail any call, and a process that can end at any: a world in which things are recorded (or
// not) is asked what became of them.

import fc from "fast-check";
import { expect, test } from "vitest";
import { type First, IdempotencyKeys } from "../../src/http/idempotency.js";
import { type KeyJournal, openKeyJournal, type Promised } from "../../src/session/key-journal.js";
import { collectingLog, ManualClock, MemoryFs } from "../trace/support.js";

const SCOPE = { owner: "ada", method: "POST", path: "/api/sessions" };
const DAY_MS = 24 * 60 * 60 * 1000;

interface World {
  fs: MemoryFs;
  clock: ManualClock;
  /** What was recorded, by the id of its Session. */
  recorded: Set<string>;
}

interface Life {
  keys: IdempotencyKeys;
  journal: KeyJournal;
}

const world = (): World => ({ fs: new MemoryFs(), clock: new ManualClock(), recorded: new Set() });

async function live({ fs, clock, recorded }: World): Promise<Life> {
  const journal = await openKeyJournal({ dir: "/data", fs, fsync: "off", clock, log: collectingLog() });
  const recall = async ({ sessionId }: Promised, answer: unknown) =>
    recorded.has(sessionId) ? (answer ?? `view of ${sessionId}`) : undefined;
  const keys = new IdempotencyKeys(clock, { durable: { journal, recall } });
  await keys.recover();
  return { keys, journal };
}

async function first(keys: IdempotencyKeys, key: string, body: unknown = {}): Promise<First<string>> {
  const claim = await keys.claim<string>(SCOPE, key, body, "settled");
  if (claim.kind !== "first") throw new Error(`${key} was not the first: ${claim.value}`);
  return claim.first;
}

/** A request as a route makes it: promised, recorded, answered. Throws when its process ends. */
async function request({ keys }: Life, { recorded, fs }: World, key: string, id: string): Promise<string> {
  const claim = await keys.claim<string>(SCOPE, key, {}, "settled");
  if (claim.kind === "repeated") return claim.value;
  let answer: string | undefined;
  try {
    await claim.first.promise({ sessionId: id, owner: "ada" }, `answer ${id}`);
    if (fs.crashed) throw new Error("the process is dead");
    recorded.add(id);
    answer = `answer ${id}`;
    return answer;
  } finally {
    await claim.first.settle(answer);
  }
}

test("A26: an answer outlives the process, with its body, for a day and no longer", async () => {
  const it = world();
  const one = await live(it);
  const claimed = await first(one.keys, "k", { a: 1, b: 2 });
  await claimed.promise({ sessionId: "s1", owner: "ada" });
  await claimed.settle("answer");
  it.clock.advance(DAY_MS - 1);
  const two = await live({ ...it, fs: it.fs.afterKill() });
  expect(await two.keys.claim(SCOPE, "k", { b: 2, a: 1 }, "settled")).toEqual({ kind: "repeated", value: "answer" });
  await expect(two.keys.claim(SCOPE, "k", { a: 2 }, "settled")).rejects.toMatchObject({ code: "idempotency_mismatch" });
  it.clock.advance(1);
  expect((await two.keys.claim(SCOPE, "k", { a: 1, b: 2 }, "settled")).kind).toBe("first");
  expect((await (await live({ ...it, fs: it.fs.afterKill() })).keys.claim(SCOPE, "k", {}, "settled")).kind).toBe(
    "first",
  );
});

test("a request that was promised and not answered is what its Session says it is", async () => {
  const it = world();
  const one = await live(it);
  for (const key of ["made", "never", "view"]) {
    await (await first(one.keys, key)).promise({ sessionId: key, owner: "ada" }, key === "view" ? undefined : key);
  }
  it.recorded.add("made").add("view");
  const two = await live({ ...it, fs: it.fs.afterKill() });
  it.recorded.clear(); // Deleted since: the answer stands, and nothing is made again.
  expect(await two.keys.claim(SCOPE, "made", {}, "settled")).toEqual({ kind: "repeated", value: "made" });
  expect(await two.keys.claim(SCOPE, "view", {}, "settled")).toEqual({ kind: "repeated", value: "view of view" });
  await expect(two.keys.claim(SCOPE, "made", { a: 1 }, "settled")).rejects.toMatchObject({
    code: "idempotency_mismatch",
  });
  await first(two.keys, "never");
});

test("a refusal after the promise is no answer, whatever is recorded by then", async () => {
  const it = world();
  const claimed = await first((await live(it)).keys, "k");
  await claimed.promise({ sessionId: "s1", owner: "ada" }, "answer");
  it.recorded.add("s1");
  await claimed.settle(undefined);
  await first((await live({ ...it, fs: it.fs.afterKill() })).keys, "k");
});

test("a Session that cannot be asked at start is asked when its key comes", async () => {
  const it = world();
  await (await first((await live(it)).keys, "k")).promise({ sessionId: "s", owner: null }, "answer");
  const journal = await openKeyJournal({
    dir: "/data",
    fs: it.fs.afterKill(),
    fsync: "off",
    clock: it.clock,
    log: collectingLog(),
  });
  let fails = true;
  const recall = async (_: Promised, answer: unknown) => {
    if (fails) throw new Error("the disk does not answer");
    return answer;
  };
  const keys = new IdempotencyKeys(it.clock, { durable: { journal, recall } });
  await keys.recover();
  await expect(keys.claim(SCOPE, "k", {}, "settled")).rejects.toThrow("does not answer");
  fails = false;
  const claims = await Promise.all([1, 2, 3].map(() => keys.claim(SCOPE, "k", {}, "settled")));
  expect(claims).toEqual(claims.map(() => ({ kind: "repeated", value: "answer" })));
});

test("a disk that is full promises nothing, and keeps nobody from trying again", async () => {
  const it = world();
  const life = await live(it);
  it.fs.plan = (_call, op) => (op === "write" ? { kind: "error", code: "ENOSPC", done: false, part: 0.5 } : undefined);
  await expect(request(life, it, "k", "s1")).rejects.toMatchObject({ name: "StorageError", errno: "ENOSPC" });
  expect(it.recorded.size).toBe(0);
  it.fs.plan = () => undefined;
  expect(await request(life, it, "k", "s2")).toBe("answer s2");
  expect(await request(await live({ ...it, fs: it.fs.afterKill() }), it, "k", "s3")).toBe("answer s2");
});

test("neither keys nor bodies can be read in the journal", async () => {
  const it = world();
  const claimed = await first((await live(it)).keys, "my-secret-key", { input: "my secret input" });
  await claimed.promise({ sessionId: "s1", owner: "ada" });
  await claimed.settle("answer");
  const [path] = it.fs.paths().filter((each) => each.endsWith(".jsonl"));
  expect(it.fs.file(path ?? "").bytes.toString()).not.toContain("secret");
});

test("A26: whenever the process ends, and however often, one key makes one thing, and its answer is the first one", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({
          key: fc.constantFrom("a", "b", "c"),
          dies: fc.option(fc.nat(6)),
          part: fc.double({ min: 0, max: 1, noNaN: true }),
        }),
        {
          maxLength: 12,
        },
      ),
      async (steps) => {
        let it = world();
        let life = await live(it);
        const answered = new Map<string, string>();
        for (const [n, { key, dies, part }] of steps.entries()) {
          const from = it.fs.calls;
          it.fs.plan = (call) =>
            dies !== null && call === from + dies ? { kind: "crash", done: part > 0.5, part } : undefined;
          const answer = await request(life, it, key, `${key}${n}`).catch(() => undefined);
          if (!it.fs.crashed) {
            expect(answer).toBe(answered.get(key) ?? answer);
            if (answer !== undefined) answered.set(key, answer);
          } else {
            it = { ...it, fs: it.fs.afterKill() };
            life = await live(it);
          }
        }
        it = { ...it, fs: it.fs.afterKill() };
        life = await live(it);
        for (const [key, answer] of answered) expect(await request(life, it, key, "again")).toBe(answer);
        for (const key of ["a", "b", "c"]) {
          expect([...it.recorded].filter((id) => id.startsWith(key)).length).toBeLessThanOrEqual(1);
        }
      },
    ),
    { numRuns: 300 },
  );
});

test("the journal begins anew when it has grown, loses no key by it, and stays in bounds", async () => {
  const it = world();
  const life = await live(it);
  const big = "x".repeat(20_000);
  for (let n = 0; n < 400; n++) {
    const claimed = await first(life.keys, `k${n}`);
    await claimed.promise({ sessionId: `s${n}`, owner: "ada" });
    await claimed.settle(n % 100 === 0 ? `${n} ${big}` : undefined);
    if (n % 3 === 0) {
      const more = await first(life.keys, `more${n}`);
      await more.promise({ sessionId: big, owner: "ada" });
      await more.settle(undefined);
    }
  }
  const files = it.fs.paths().filter((path) => path.startsWith("/data/keys/"));
  expect(files).toHaveLength(1);
  expect(files[0]).not.toContain("000001");
  expect(it.fs.file(files[0] ?? "").bytes.length).toBeLessThan(1_500_000);
  const next = await live({ ...it, fs: it.fs.afterKill() });
  for (const n of [0, 100, 200, 300]) {
    expect(await next.keys.claim(SCOPE, `k${n}`, {}, "settled")).toEqual({ kind: "repeated", value: `${n} ${big}` });
  }
  await first(next.keys, "k1");
});

test("a damaged line costs its own key, and a torn end nobody's", async () => {
  const it = world();
  const life = await live(it);
  for (const key of ["a", "b", "c"]) await request(life, it, key, key);
  const path = it.fs.paths().find((each) => each.endsWith(".jsonl")) ?? "";
  const lines = it.fs.file(path).bytes.toString().trimEnd().split("\n");
  const bent = lines.map((line, n) => (n === 2 || n === 3 ? `${line.slice(0, 20)}\0` : line));
  it.fs.file(path).bytes = Buffer.from(`${bent.join("\n")}\n{"name":"torn`);
  const next = await live(it);
  it.recorded.clear();
  expect(await request(next, it, "a", "again")).toBe("answer a");
  expect(await request(next, it, "b", "anew")).toBe("answer anew");
  expect(await request(next, it, "c", "again")).toBe("answer c");
  expect(await request(await live({ ...it, fs: it.fs.afterKill() }), it, "b", "once more")).toBe("answer anew");
});
