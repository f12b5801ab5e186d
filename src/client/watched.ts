// Calls that cannot hang: one that hears nothing for too long ends as an OmnidError, headers and body alike.

import { linkedTo } from "./linked.js";
import { OmnidError } from "./omnid-error.js";
import { Silence } from "./silence.js";
import { broken, type Call, parsed, type Transport } from "./transport.js";

export interface WatchOptions {
  signal: AbortSignal;
  silenceMs: number;
}

/** An answer whose body is read under the same watch. */
export interface WatchedBody {
  readonly body: ReadableStream<Uint8Array>;
  readonly silence: Silence;
  readonly status: number;
}

/**
 * Opens a call and gives its body to `use`; whatever `use` leaves open is closed when it returns.
 * @throws OmnidError, or the signal's reason
 */
export async function withBody<T>(
  transport: Transport,
  call: Omit<Call, "signal">,
  { signal, silenceMs }: WatchOptions,
  use: (watched: WatchedBody) => Promise<T>,
): Promise<T> {
  const own = linkedTo(signal);
  const silence = new Silence(transport.clock, silenceMs, own.abort);
  try {
    const response = await silence.during(transport.open({ ...call, signal: own.signal }));
    if (response.body === null) throw new OmnidError("unreadable", "the answer has no body", response);
    return await use({ body: response.body, silence, status: response.status });
  } catch (error) {
    throw broken(own.signal.aborted ? own.signal.reason : error, signal);
  } finally {
    own.release();
    own.abort();
  }
}

/** A call's JSON. */
export function readJson<T>(transport: Transport, call: Omit<Call, "signal">, options: WatchOptions): Promise<T> {
  return withBody(transport, call, options, async ({ body, silence, status }) => {
    const decoder = new TextDecoder();
    const reader = body.getReader();
    let text = "";
    for (;;) {
      const { done, value } = await silence.during(reader.read());
      if (done) return parsed<T>(text + decoder.decode(), status);
      text += decoder.decode(value, { stream: true });
    }
  });
}
