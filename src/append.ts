// Adding many to a list. `list.push(...items)` passes each item as an argument, and above some hundred thousand of them
// that overflows the stack; how long a list may grow is often not ours to say.

export function append<T>(list: T[], items: Iterable<T>): void {
  for (const item of items) list.push(item);
}
