// @ts-check
// A browser opens six HTTP/1.1 connections to a server, for all its tabs together. Streams take four at most, the list
// of Sessions one for all tabs, so that a call always finds one free. Tabs agree by Web Locks; where there are none (a
// page that came over plain HTTP from another machine) each tab takes what it wants.

const STREAMS = 4;

/**
 * Takes one of the places for streams.
 * @returns {Promise<(() => void) | undefined>} how to give it back, or undefined when all are taken
 */
export async function takeStreamSlot() {
  if (navigator.locks === undefined) return () => {};
  for (let n = 1; n <= STREAMS; n += 1) {
    const release = await tryLock(`omnid-stream-${n}`);
    if (release !== undefined) return release;
  }
  return undefined;
}

/** @param {string} name @returns {Promise<(() => void) | undefined>} */
function tryLock(name) {
  return new Promise((resolve, reject) => {
    navigator.locks
      .request(name, { ifAvailable: true }, (lock) => {
        if (lock === null) return resolve(undefined);
        // The lock is held until this promise settles.
        return new Promise((release) => resolve(() => release(undefined)));
      })
      .catch(reject);
  });
}

/**
 * Runs `work` in one tab at a time; the next tab takes over when that one closes.
 * @param {string} name @param {AbortSignal} signal @param {() => Promise<void>} work
 */
export async function inOneTab(name, signal, work) {
  if (navigator.locks === undefined) return work();
  try {
    await navigator.locks.request(name, { signal }, work);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/**
 * Names what belongs to one token without showing it: tabs with different tokens share nothing.
 * @param {string} token @returns {Promise<string>}
 */
export async function scopeOf(token) {
  if (token === "") return "open";
  // No digest over plain HTTP: this tab shares with no other.
  if (crypto.subtle === undefined) return String(Math.random());
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(`omnid ${token}`));
  return Array.from(new Uint8Array(digest).slice(0, 12), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
