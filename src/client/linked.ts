// A controller that ends with another signal, until it is released. AbortSignal.any would hold on to the longer-lived
// signal's listeners for every connection there ever was.

export interface Linked {
  readonly signal: AbortSignal;
  readonly abort: (reason?: unknown) => void;
  readonly release: () => void;
}

export function linkedTo(parent: AbortSignal | undefined): Linked {
  const own = new AbortController();
  const end = () => own.abort(parent?.reason);
  parent?.addEventListener("abort", end, { once: true });
  if (parent?.aborted) end();
  return {
    signal: own.signal,
    abort: (reason) => own.abort(reason),
    release: () => parent?.removeEventListener("abort", end),
  };
}
