// Calls run at once, and Sessions share Workspaces: two edits of one file would lose one of them. Changes of a file
// therefore take turns, in this process; the key is the file's real path.

const turns = new Map<string, Promise<unknown>>();

/** Runs `change` when every earlier change of `key` is over. */
export async function inTurn<T>(key: string, change: () => Promise<T>): Promise<T> {
  const before = turns.get(key);
  const mine = before === undefined ? change() : before.then(change, change);
  turns.set(key, mine);
  try {
    return await mine;
  } finally {
    if (turns.get(key) === mine) turns.delete(key);
  }
}
