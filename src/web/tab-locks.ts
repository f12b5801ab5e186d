// A browser opens six HTTP/1.1 connections to a server, for all its tabs together. Streams take four at most, the list
// of Sessions one for all tabs, so that a call always finds one free. Tabs agree by Web Locks; where there are none (a
// page that came over plain HTTP from another machine) each tab takes what it wants.

const STREAMS = 4;

/** Takes one of the places for streams. @returns how to give it back, or undefined when all are taken */
export async function takeStreamSlot(): Promise<(() => void) | undefined> {
  if (navigator.locks === undefined) return () => {};
  for (let n = 1; n <= STREAMS; n += 1) {
    const release = await tryLock(`omnid-stream-${n}`);
    if (release !== undefined) return release;
  }
  return undefined;
}

function tryLock(name: string): Promise<(() => void) | undefined> {
  return new Promise((resolve, reject) => {
    navigator.locks
      .request(name, { ifAvailable: true }, (lock) => {
        if (lock === null) return resolve(undefined);
        // The lock is held until this promise settles.
        return new Promise<void>((release) => resolve(() => release()));
      })
      .catch(reject);
  });
}

/** Runs `work` in one tab at a time; the next tab takes over when that one closes. */
export async function inOneTab(name: string, work: () => Promise<void>): Promise<void> {
  if (navigator.locks === undefined) return work();
  await navigator.locks.request(name, work);
}

/** Names what belongs to one token without showing it: tabs with different tokens share nothing. */
export async function scopeOf(token: string): Promise<string> {
  if (token === "") return "open";
  // No digest over plain HTTP: this tab shares with no other.
  if (crypto.subtle === undefined) return newKey();
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(`omnid ${token}`));
  return hex(new Uint8Array(digest).slice(0, 12));
}

/** A key that no other has; `randomUUID` is not there over plain HTTP. */
export const newKey = (): string => hex(crypto.getRandomValues(new Uint8Array(16)));

const hex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
