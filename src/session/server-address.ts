// Where the server of a data directory listens, for programs of the same user on the same machine. The record names the
// lease under which it was written: while that lease is held by a live process the address is that very server's, and a
// token may go to it. What a server that was killed left behind proves nothing: anybody may listen there by now.

import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { leaseHeldIn } from "./lease.js";

const FILE = "omnid.url";

/** Writes where the process that holds the directory under `lease` listens: its URL, and that lease. */
export async function publishAddress(dir: string, url: string, lease: string): Promise<void> {
  const path = join(dir, FILE);
  const draft = `${path}.tmp`;
  await writeFile(draft, `${url}\n${lease}\n`, { mode: 0o600 });
  await rename(draft, path);
}

/** @returns where the live server of this directory listens; undefined where there is none, or it cannot be told. */
export async function publishedAddress(dir: string): Promise<string | undefined> {
  // Nothing there, or nothing that may be read.
  const [url = "", lease] = (await readFile(join(dir, FILE), "utf8").catch(() => "")).split("\n");
  if (!URL.canParse(url) || !/^https?:/.test(url)) return undefined;
  return lease === (await leaseHeldIn(dir).catch(() => undefined)) ? url : undefined;
}

/** Takes it back, unless it is another's by now. Never rejects. */
export async function withdrawAddress(dir: string, url: string): Promise<void> {
  if ((await publishedAddress(dir)) === url) await rm(join(dir, FILE), { force: true }).catch(() => {});
}
