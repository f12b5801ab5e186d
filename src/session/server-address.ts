// Where the server of a data directory listens, for programs of the same user on the same machine. It is a hint: whoever
// reads it asks the server whether it is there.

import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

const FILE = "omnid.url";

/** Writes where this process listens. The caller holds the directory's lease. */
export async function publishAddress(dir: string, url: string): Promise<void> {
  const path = join(dir, FILE);
  const draft = `${path}.tmp`;
  await writeFile(draft, `${url}\n`, { mode: 0o600 });
  await rename(draft, path);
}

/** @returns where the server of this directory said that it listens. */
export async function publishedAddress(dir: string): Promise<string | undefined> {
  // Nothing there, or nothing that may be read: the server is to be found in another way.
  const text = await readFile(join(dir, FILE), "utf8").catch(() => "");
  const url = text.trim();
  return URL.canParse(url) && /^https?:/.test(url) ? url : undefined;
}

/** Takes it back, unless it is another's by now. Never rejects. */
export async function withdrawAddress(dir: string, url: string): Promise<void> {
  if ((await publishedAddress(dir)) === url) await rm(join(dir, FILE), { force: true }).catch(() => {});
}
