// Works through the views of a Session as they come, one at a time: what comes while one is shown is in the next.

import type { Following, View } from "../client/index.js";

/**
 * Calls `show` with each view until it returns something, or the following is over. `again` has it called once more,
 * also with a view that it has seen.
 * @returns what `show` returned, or undefined.
 */
export async function watch<T>(
  following: Following,
  show: (view: View, again: () => void) => Promise<T | undefined> | T | undefined,
): Promise<T | undefined> {
  let isOver = false;
  let wake = () => {};
  const stop = following.subscribe(() => wake());
  void following.closed.then(() => {
    isOver = true;
    wake();
  });
  let seen: View | undefined;
  const again = () => {
    seen = undefined;
    wake();
  };
  try {
    for (;;) {
      const { view } = following;
      if (view !== seen) {
        seen = view;
        const result = await show(view, again);
        if (result !== undefined) return result;
      } else if (isOver) return undefined;
      else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  } finally {
    stop();
  }
}

/** Fetches what a resync left out between what was shown and the oldest record that is there. */
export async function joined(following: Following, from: number): Promise<View> {
  while (following.view.first > from && following.view.nextBefore !== null) await following.loadEarlier();
  return following.view;
}
