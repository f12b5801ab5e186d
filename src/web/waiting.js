// @ts-check
// Waiting, and what shortens it.

/**
 * The pause before try number `failures`: doubling from 500 ms to 15 s, between half and all of it, so that many
 * pages do not come back in the same moment.
 * @param {number} failures @param {() => number} [random]
 */
export const backoffMs = (failures, random = Math.random) =>
  Math.round(Math.min(15_000, 500 * 2 ** Math.min(failures - 1, 10)) * (0.5 + random() / 2));

/**
 * Resolves after `ms`, when `signal` aborts, or when `wake` is called by what is given to it.
 * @param {number} ms @param {AbortSignal} signal @param {(wake: () => void) => () => void} [listen] returns how to stop listening
 * @returns {Promise<void>}
 */
export function pause(ms, signal, listen = () => () => {}) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      unlisten();
      resolve();
    };
    const timer = setTimeout(done, ms);
    const unlisten = listen(done);
    signal.addEventListener("abort", done, { once: true });
    if (signal.aborted) done();
  });
}

/** Calls `wake` when the network or the reader comes back. @param {() => void} wake */
export function onReturn(wake) {
  const seen = () => {
    if (document.visibilityState === "visible") wake();
  };
  addEventListener("online", wake);
  document.addEventListener("visibilitychange", seen);
  return () => {
    removeEventListener("online", wake);
    document.removeEventListener("visibilitychange", seen);
  };
}

/**
 * Aborts when nothing was heard for `ms`: a connection may be dead without anyone having said so.
 * @param {number} ms @param {AbortController} controller
 */
export function watchdog(ms, controller) {
  let timer = setTimeout(() => controller.abort(), ms);
  return {
    heard: () => {
      clearTimeout(timer);
      timer = setTimeout(() => controller.abort(), ms);
    },
    end: () => clearTimeout(timer),
  };
}
