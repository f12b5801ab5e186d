// Providers repeat tool call ids, leave them out, or use characters that others refuse. Everything behind this point
// may rely on an id that is unique in the Session and safe in a URL, a file name and every protocol.

const PLAIN = /^[A-Za-z0-9_.:-]{1,64}$/;

/** Our id for a call; `providerCallId` is the provider's own, where ours had to be another. */
export interface AcceptedId {
  toolCallId: string;
  providerCallId?: string;
}

/** The ids of one answer. */
export class ToolCallIds {
  readonly #isTaken: (toolCallId: string) => boolean;
  readonly #newId: () => string;
  readonly #here = new Set<string>();

  /**
   * @param isTaken true for an id that the Session has seen.
   * @param newId gives a fresh identifier in any alphabet.
   */
  constructor(isTaken: (toolCallId: string) => boolean, newId: () => string) {
    this.#isTaken = isTaken;
    this.#newId = newId;
  }

  /** Keeps the provider's id where it is new and plain, else makes one. "" stands for none. */
  accept(providerId: string): AcceptedId {
    if (PLAIN.test(providerId) && this.#isNew(providerId)) {
      this.#here.add(providerId);
      return { toolCallId: providerId };
    }
    const toolCallId = this.#fresh();
    this.#here.add(toolCallId);
    return providerId === "" ? { toolCallId } : { toolCallId, providerCallId: providerId };
  }

  #isNew(id: string): boolean {
    return !this.#here.has(id) && !this.#isTaken(id);
  }

  #fresh(): string {
    const stem = `call_${this.#newId()
      .replace(/[^A-Za-z0-9]/g, "")
      .slice(0, 32)}`;
    if (this.#isNew(stem)) return stem;
    // A source of ids that repeats itself must not hang a turn.
    for (let n = 2; ; n++) {
      const id = `${stem}_${n}`;
      if (this.#isNew(id)) return id;
    }
  }
}
