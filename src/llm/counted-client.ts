// An LLMClient that tells how each Request went. It looks at a read of the network, never at a message in it.

import type { LLMClient, LLMOutcome, LLMRequest } from "../engine/ports.js";
import type { OmniMessage } from "../protocol/message.js";
import type { TokenCounts } from "../protocol/payloads.js";

/** One Request that is over. */
export interface RequestStat {
  /** How it ended: `completed`, `aborted`, or the kind of its error. */
  readonly outcome: string;
  readonly usage: TokenCounts;
  /** From the call to the first message, in ms; undefined where none came. */
  readonly firstMs: number | undefined;
  /** From the call to the end, in ms. */
  readonly totalMs: number;
}

type Batch = readonly OmniMessage[];
type Stream = AsyncGenerator<Batch, LLMOutcome, void>;

export interface CountedOptions {
  clock: { monotonic(): number };
  /** Called once for each Request that was begun. Must not throw. */
  onRequest(stat: RequestStat): void;
}

export function countedClient(client: LLMClient, options: CountedOptions): LLMClient {
  return { stream: (request) => new CountedStream(client.stream(request), request, options) };
}

/** Hands everything through. A generator around the other would cost more turns of the loop for each read. */
class CountedStream implements Stream {
  readonly #inner: Stream;
  readonly #request: LLMRequest;
  readonly #options: CountedOptions;
  #calledAt: number | undefined;
  #firstMs: number | undefined;
  #isOver = false;

  constructor(inner: Stream, request: LLMRequest, options: CountedOptions) {
    this.#inner = inner;
    this.#request = request;
    this.#options = options;
  }

  async next(): Promise<IteratorResult<Batch, LLMOutcome>> {
    this.#calledAt ??= this.#options.clock.monotonic();
    const read = await this.#inner.next();
    if (read.done === true) this.#over(read.value);
    else if (this.#firstMs === undefined) this.#firstMs = this.#elapsedMs();
    return read;
  }

  /** Given up, or let go of after its end. */
  return(value: LLMOutcome | PromiseLike<LLMOutcome>): Promise<IteratorResult<Batch, LLMOutcome>> {
    void Promise.resolve(value).then((outcome) => this.#over(outcome));
    return this.#inner.return(value);
  }

  throw(error: unknown): Promise<IteratorResult<Batch, LLMOutcome>> {
    return this.#inner.throw(error);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #over(outcome: LLMOutcome | undefined): void {
    if (this.#isOver || this.#calledAt === undefined || outcome === undefined) return;
    this.#isOver = true;
    const status = this.#request.signal.aborted ? "aborted" : outcome.status;
    this.#options.onRequest({
      outcome: status === "completed" || status === "aborted" ? status : (outcome.error?.kind ?? status),
      usage: outcome.usage,
      firstMs: this.#firstMs,
      totalMs: this.#elapsedMs(),
    });
  }

  #elapsedMs(): number {
    return this.#options.clock.monotonic() - (this.#calledAt ?? 0);
  }
}
