/** Ends a `switch` over a union of the page's own: a new variant fails to compile here. */
export function unreachable(value: never): never {
  throw new TypeError(`unreachable: ${JSON.stringify(value)}`);
}
