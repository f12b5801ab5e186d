/** A refusal with a literal code, for callers that asked for something that cannot be done. Bugs throw instead. */
export type Result<T, Code extends string> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly code: Code; readonly message: string };

export const ok = <T>(value: T): { ok: true; value: T } => ({ ok: true, value });

export const refuse = <Code extends string>(
  code: Code,
  message: string,
): { ok: false; code: Code; message: string } => ({
  ok: false,
  code,
  message,
});

/** Ends a `switch` over a union: a new variant fails to compile here. */
export function unreachable(value: never): never {
  throw new Error(`unreachable: ${JSON.stringify(value)}`);
}
