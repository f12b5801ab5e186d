// Real processes on a real directory: what a lease is for is the other process.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { build } from "vite";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { acquireLease, isWrongPlace, leaseHeldIn } from "../../src/session/lease.js";
import { giveLifeSign } from "../../src/session/life-sign.js";
import { isAlive, ownIdentity } from "../../src/session/process-identity.js";

let dir = "";
const children: ChildProcess[] = [];
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "omnid-lease-"));
});
afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill("SIGKILL");
    await once(child, "exit");
  }
  await rm(dir, { recursive: true, force: true });
});

const lockPath = () => join(dir, "omnid.lock");
const lockOf = async () => JSON.parse(await readFile(lockPath(), "utf8")) as Record<string, unknown>;

const STARTER = `
  import { acquireLease, isWrongPlace } from "./lease.mjs";
  process.stdin.once("data", async () => {
    const lease = await acquireLease(process.argv[2]);
    console.log(lease.ok ? "won" : lease.code + ": " + lease.message);
    process.stdin.once("data", async () => {
      if (lease.ok) await lease.value.release();
      process.exit(0);
    });
  });
  console.log("ready");
`;

let program = "";
beforeAll(async () => {
  program = await mkdtemp(join(tmpdir(), "omnid-starter-"));
  await build({
    configFile: false,
    logLevel: "silent",
    ssr: { noExternal: true },
    build: {
      ssr: new URL("../../src/session/lease.ts", import.meta.url).pathname,
      outDir: program,
      rollupOptions: { output: { entryFileNames: "lease.mjs" } },
    },
  });
  await writeFile(join(program, "starter.mjs"), STARTER);
});
afterAll(() => rm(program, { recursive: true, force: true }));

interface Starter {
  child: ChildProcess;
  /** Lets it try; resolves with what came of it. The process stays. */
  go(): Promise<string>;
  /** Lets it end in order. */
  stop(): Promise<void>;
  kill(): Promise<void>;
}

/** What is in the directory; a sign of life has another name each time. */
const names = async () =>
  (await readdir(dir)).map((name) => name.replace(/^omnid\.[0-9a-f]{12}\.sock$/, "a sign of life")).sort();

/** Runs a command as a container would: among pids of its own. */
const CONTAINER = ["unshare", "-fp", "--mount-proc", "--kill-child"];
const canContain = spawnSync(CONTAINER[0]!, [...CONTAINER.slice(1), "true"]).status === 0;

async function starter({ inContainer = false } = {}): Promise<Starter> {
  const [command, ...args] = [...(inContainer ? CONTAINER : []), process.execPath, join(program, "starter.mjs"), dir];
  const child = spawn(command!, args, { stdio: ["pipe", "pipe", inContainer ? "ignore" : "inherit"] });
  children.push(child);
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  expect((await lines.next()).value).toBe("ready");
  return {
    child,
    go: async () => {
      child.stdin!.write("go\n");
      return String((await lines.next()).value);
    },
    stop: async () => {
      const exited = once(child, "exit");
      child.stdin!.write("stop\n");
      await exited;
    },
    kill: async () => {
      const exited = once(child, "exit");
      // What runs in a container ends with the first of its processes.
      const inner = inContainer ? await readFile(`/proc/${child.pid}/task/${child.pid}/children`, "utf8") : child.pid;
      process.kill(Number(inner), "SIGKILL");
      await exited;
    },
  };
}

const starters = (count: number) => Promise.all(Array.from({ length: count }, () => starter()));

describe("a data directory", () => {
  test("is held by one process, which the refusal names with its time, until it lets go", async () => {
    const [one, two, three] = await starters(3);
    expect(await one!.go()).toBe("won");
    const { since } = await lockOf();
    expect(await two!.go()).toBe(`held: ${dir} is in use by another omnid: process ${one!.child.pid}, since ${since}`);
    expect((await stat(lockPath())).mode & 0o777).toBe(0o600);
    await one!.stop();
    expect(await readdir(dir)).toEqual([]);
    expect(await three!.go()).toBe("won");
  });

  test("of a process that was killed is taken over by exactly one of those that race for it", async () => {
    for (let round = 0; round < 2; round++) {
      const [first, ...others] = await starters(5);
      expect(await first!.go()).toBe("won");
      await first!.kill();
      const outcomes = await Promise.all(others.map((one) => one.go()));
      expect(outcomes.filter((outcome) => outcome === "won")).toHaveLength(1);
      expect(outcomes.filter((outcome) => outcome.startsWith("held: "))).toHaveLength(3);
      const winner = others[outcomes.indexOf("won")]!;
      expect((await lockOf()).pid).toBe(winner.child.pid);
      expect(await names()).toEqual(["a sign of life", "omnid.lock"]);
      await winner.stop();
      for (const other of others) if (other !== winner) await other.stop();
      expect(await readdir(dir)).toEqual([]);
    }
  });

  test.runIf(canContain)("is held also against other containers, and is taken over there after a kill", async () => {
    const contained = (count: number) =>
      Promise.all(Array.from({ length: count }, () => starter({ inContainer: true })));
    const winnerOf = async (racers: Starter[]) => {
      const outcomes = await Promise.all(racers.map((one) => one.go()));
      const { pid, since } = await lockOf();
      const refusal = `held: ${dir} is in use by another omnid: process ${pid} of another container, since ${since}`;
      expect(outcomes.toSorted()).toEqual([...racers.slice(1).map(() => refusal), "won"]);
      expect(await names()).toEqual(["a sign of life", "omnid.lock"]);
      return racers[outcomes.indexOf("won")]!;
    };
    const first = await winnerOf(await contained(3));
    await first.kill();
    const second = await winnerOf(await contained(2));
    const outside = await starter();
    expect(await outside.go()).toContain(" of another container, ");
    await second.stop();
    expect(await readdir(dir)).toEqual([]);
  });

  test("that nobody holds is taken by exactly one of those that race for it", async () => {
    const racers = await starters(4);
    const outcomes = await Promise.all(racers.map((one) => one.go()));
    expect(outcomes.filter((outcome) => outcome === "won")).toHaveLength(1);
  });
});

describe("within one process", () => {
  async function take() {
    const lease = await acquireLease(dir);
    return lease.ok ? lease.value : undefined;
  }

  test("a second try is refused as another process's would be, and racing tries have one winner", async () => {
    const leases = await Promise.all(Array.from({ length: 20 }, take));
    const won = leases.filter((lease) => lease !== undefined);
    expect(won).toHaveLength(1);
    await won[0]!.release();
    await won[0]!.release();
    expect(await take()).toBeDefined();
  });

  test("releasing does not take away what another has taken since", async () => {
    const lease = await take();
    const other = { ...(await lockOf()), token: "f".repeat(32) };
    await writeFile(lockPath(), JSON.stringify(other));
    await lease!.release();
    expect(await lockOf()).toEqual(other);
  });

  test("a lock of an earlier boot, of a reused pid, or that says nothing is stale, also in a race", async () => {
    const own = await ownIdentity();
    const lock = { token: "a".repeat(32), since: "2026-07-18T00:00:00.000Z", ...own };
    const stale = [
      "",
      "{",
      "pid 12",
      ...(own.bootId === null ? [] : [JSON.stringify({ ...lock, bootId: "another" })]),
      ...(own.startedAtTicks === null ? [] : [JSON.stringify({ ...lock, startedAtTicks: "1" })]),
      JSON.stringify({ ...lock, pid: 2 ** 22 + 1 }),
    ];
    for (const text of stale) {
      await writeFile(lockPath(), text);
      const won = (await Promise.all([take(), take(), take(), take()])).filter((lease) => lease !== undefined);
      expect(won).toHaveLength(1);
      await won[0]!.release();
      expect(await readdir(dir)).toEqual([]);
    }
  });

  test("a successor that died while taking over does not keep the directory from the next", async () => {
    const dead = { ...(await ownIdentity()), pid: 2 ** 22 + 1, since: "2026-07-18T00:00:00.000Z" };
    await writeFile(lockPath(), JSON.stringify({ ...dead, token: "a".repeat(32) }));
    await writeFile(`${lockPath()}.after-${"a".repeat(32)}`, JSON.stringify({ ...dead, token: "b".repeat(32) }));
    await writeFile(`${lockPath()}.after-${"b".repeat(32)}`, JSON.stringify({ ...dead, token: "c".repeat(32) }));
    const won = (await Promise.all([take(), take(), take()])).filter((lease) => lease !== undefined);
    expect(won).toHaveLength(1);
    expect(await names()).toEqual(["a sign of life", "omnid.lock"]);
  });

  test("of a process whose pid means nothing here is held while that process gives a sign of life", async () => {
    const own = await ownIdentity();
    const token = "a".repeat(32);
    const other = { ...own, token, since: new Date().toISOString(), pid: 2 ** 22 + 1, pidNamespace: "pid:[1]" };
    await writeFile(lockPath(), JSON.stringify(other));
    const sign = await giveLifeSign(join(dir, `omnid.${token.slice(0, 12)}.sock`));
    // Where there are no such namespaces nobody is elsewhere.
    if (own.pidNamespace !== null) {
      expect(await acquireLease(dir)).toMatchObject({
        ok: false,
        message: expect.stringContaining("another container"),
      });
      // Its address is one of another network.
      expect(await leaseHeldIn(dir)).toBeUndefined();
      expect(await lockOf()).toMatchObject({ token });
    }
    await sign?.close();
    expect(await take()).toBeDefined();
  });

  test("where the file system takes no socket, or the path is too long for one, it is a lock all the same", async () => {
    const inner = join(dir, "x".repeat(100));
    const lease = await acquireLease(inner);
    expect(lease.ok).toBe(true);
    expect(await readdir(inner)).toEqual(["omnid.lock"]);
    expect((await acquireLease(inner)).ok).toBe(false);
    if (lease.ok) await lease.value.release();
    expect(await readdir(inner)).toEqual([]);
  });

  test("a folder that is not there is made, for its owner only", async () => {
    const inner = join(dir, "a", "b");
    const lease = await acquireLease(inner);
    expect(lease.ok).toBe(true);
    expect((await stat(inner)).mode & 0o777).toBe(0o700);
  });
});

test("a process that runs is alive, and one with its pid but another start is not", async () => {
  const own = await ownIdentity();
  const now = Date.now();
  expect(await isAlive(own, now, now)).toBe(true);
  expect(await isAlive({ ...own, startedAtTicks: null }, now, now)).toBe(true);
  expect(await isAlive({ ...own, bootId: null }, 0, now)).toBe(false);
  if (own.startedAtTicks !== null) expect(await isAlive({ ...own, startedAtTicks: "1" }, now, now)).toBe(false);
});

test.each<[boolean, string[]]>([
  [true, ["ENOENT", "ENOTDIR", "EACCES", "EPERM", "EROFS", "ENAMETOOLONG"]],
  [false, ["ENOSPC", "EDQUOT", "EIO", "EMFILE", "ENFILE", "ENOMEM", "EFBIG", "ESTALE"]],
])("whether the place is wrong is told from a disk that may do another time: %s", (isWrong, codes) => {
  for (const code of codes)
    expect([code, isWrongPlace(Object.assign(new Error(code), { code }))]).toEqual([code, isWrong]);
});
