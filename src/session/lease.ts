// One server for each data directory. `omnid.lock` names the process that holds it; it appears whole, by a hard link,
// and whoever finds the name taken looks whether that process lives.
//
// The hard part is two starters that both find a dead holder: the second must not take away what the first just took.
// So a dead holder is followed by exactly one: its successor first takes `omnid.lock.after-<token of the dead>` by the
// same rule (also when an earlier successor died while doing this), then looks whether the lock still is the dead
// one's, and only then renames its claim over it. While it holds the claim nobody else may do that.
//
// A pid says nothing about a process of another container; there a socket beside the lock does, which is there before it.

import { createHash, randomBytes } from "node:crypto";
import { link, open, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { type Clock, systemClock } from "../clock.js";
import { ok, type Result, refuse } from "../result.js";
import { makeFolder } from "../trace/make-folder.js";
import { errnoOf } from "../trace/storage-error.js";
import { giveLifeSign, hasLifeSign } from "./life-sign.js";
import { isAlive, isElsewhere, ownIdentity } from "./process-identity.js";

const LOCK_FILE = "omnid.lock";

const holderSchema = z.object({
  token: z.string().regex(/^[0-9a-f]{32}$/),
  pid: z.number().int().positive(),
  startedAtTicks: z.string().nullable(),
  bootId: z.string().nullable(),
  pidNamespace: z.string().nullable().optional(),
  since: z.iso.datetime(),
});
type Holder = z.infer<typeof holderSchema>;

export interface Lease {
  /** Names it among all that there ever were. Known only to those who may read the directory. */
  readonly token: string;
  /** Lets another server have the directory. Safe to call twice. */
  release(): Promise<void>;
}

/**
 * Takes the data directory for this process, and makes it when it is missing.
 * @returns `held` with a message that names the process which has it.
 */
export async function acquireLease(dir: string, clock: Clock = systemClock()): Promise<Result<Lease, "held">> {
  await makeFolder(dir);
  const path = join(dir, LOCK_FILE);
  const me: Holder = { token: randomBytes(16).toString("hex"), ...(await ownIdentity()), since: clock.iso() };
  const card = `${path}.${me.token}`;
  const sign = await giveLifeSign(signOf(dir, me.token));
  let isOurs = false;
  try {
    await writeCard(card, me);
    const other = await take(path, path, { card, clock });
    isOurs = other === undefined;
    if (other !== undefined) return refuse("held", await heldBy(other, dir));
  } finally {
    if (!isOurs) await sign?.close();
    await rm(card, { force: true });
  }
  const release = async () => {
    await giveBack(path, me.token);
    await sign?.close();
  };
  return ok({ token: me.token, release });
}

/** What says that there can be no data directory in this place. Anything else is the disk's, and may be over later. */
const OF_THE_PLACE: ReadonlySet<string | undefined> = new Set([
  ...["ENOENT", "ENOTDIR", "EISDIR", "ELOOP", "ENAMETOOLONG", "EINVAL"],
  ...["EACCES", "EPERM", "EROFS", "ENOSYS", "ENOTSUP", "EOPNOTSUPP"],
]);

/** @returns whether what `acquireLease` threw will be so again until somebody changes the place or its name. */
export const isWrongPlace = (error: unknown): boolean => OF_THE_PLACE.has(errnoOf(error));

async function heldBy(other: Holder, dir: string): Promise<string> {
  const where = (await isElsewhere(other)) ? " of another container" : "";
  return `${dir} is in use by another omnid: process ${other.pid}${where}, since ${other.since}`;
}

/** Where the process that has this token gives its sign of life. Short: an address of the system holds few bytes. */
const signOf = (dir: string, token: string): string => join(dir, `omnid.${token.slice(0, 12)}.sock`);

/** @returns the token of the lease that a live process has on the directory, one whose network is ours. */
export async function leaseHeldIn(dir: string, clock: Clock = systemClock()): Promise<string | undefined> {
  const holder = (await readHolder(join(dir, LOCK_FILE)))?.holder;
  if (holder === undefined || (await isElsewhere(holder))) return undefined;
  return (await isAlive(holder, Date.parse(holder.since), clock.now())) ? holder.token : undefined;
}

async function lives(holder: Holder, dir: string, clock: Clock): Promise<boolean> {
  if (await isAlive(holder, Date.parse(holder.since), clock.now())) return true;
  return (await isElsewhere(holder)) && (await hasLifeSign(signOf(dir, holder.token)));
}

/** @returns undefined when the file at `path` is ours now, else the live process that has it. */
async function take(path: string, base: string, me: { card: string; clock: Clock }): Promise<Holder | undefined> {
  for (;;) {
    if (await linked(me.card, path)) return undefined;
    const found = await readHolder(path);
    if (found === undefined) continue; // Given back in between.
    if (found.holder !== undefined && (await lives(found.holder, dirname(base), me.clock))) return found.holder;
    const claim = `${base}.after-${found.token}`;
    const other = await take(claim, base, me);
    if (other !== undefined) return other;
    if ((await readHolder(path))?.token === found.token) {
      await rename(claim, path);
      await rm(signOf(dirname(base), found.token), { force: true });
      return undefined;
    }
    // Somebody followed the dead one before we had the claim.
    await rm(claim, { force: true });
  }
}

async function giveBack(path: string, token: string): Promise<void> {
  if ((await readHolder(path))?.token === token) await rm(path, { force: true });
}

/** Writes what the lock will say, on the disk before it is the lock: a lock never reads as half of one. */
async function writeCard(path: string, holder: Holder): Promise<void> {
  const handle = await open(path, "wx", 0o600);
  try {
    await handle.chmod(0o600);
    await handle.writeFile(`${JSON.stringify(holder)}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function linked(card: string, path: string): Promise<boolean> {
  try {
    await link(card, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** @returns undefined when there is no file. A file that says nothing we know has no holder, and its text as token. */
async function readHolder(path: string): Promise<{ token: string; holder?: Holder } | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const parsed = holderSchema.safeParse(parseJson(text));
  if (parsed.success) return { token: parsed.data.token, holder: parsed.data };
  return { token: createHash("sha256").update(text).digest("hex").slice(0, 32) };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // Damage: nobody can be asked whether he lives.
  }
}
