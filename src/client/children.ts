// A child's place in a view. Its id comes from the server and may be any word, `constructor` and `__proto__` included, so
// only what the view itself holds under it counts.

import type { ChildView, View } from "./view-types.js";

export function childOf({ children }: View, id: string): ChildView | undefined {
  return Object.hasOwn(children, id) ? children[id] : undefined;
}
