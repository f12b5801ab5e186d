// Idempotency-Key: the same key with an equal body gives the first 2xx answer again and starts nothing, for a day and
// across restarts. Bounded: past `maxBytes` the oldest kept answers go first; those in flight are bounded by their
// connections.
//
// What a request becomes is in the journal before any of it is recorded. So after the process died in between, whether
// it came about is a question that the Sessions answer: if so the key has its answer, if not it was never used.

import { createHash } from "node:crypto";
import type { Clock } from "../clock.js";
import { KEY_KEPT_MS, type KeyJournal, type KeyLine, type Promised } from "../session/key-journal.js";
import { HttpError } from "./errors.js";

const MAX_BYTES = 64 * 1024 * 1024;
/** What an entry costs beside its answer: digests, the map's slot, the object. */
const ENTRY_BYTES = 400;

/** Which request a key belongs to. */
export interface Scope {
  owner: string | null;
  method: string;
  path: string;
}

/** The first request with a key. `settle` must be called exactly once, on every way out. */
export interface First<T> {
  /**
   * Says what the request becomes, before any of it is recorded. `answer` is what it will be answered, where that is
   * known. Rejects with StorageError: then nothing may be recorded.
   */
  promise(promised: Promised, answer?: T): Promise<void>;
  /** The answer is certain, though not yet kept: those that only want to look may go on. */
  assign(value: T): void;
  /**
   * The final answer, before it is given; or undefined when there is none to keep: then the next request with the key is
   * the first. Never rejects: what was promised is recorded, so the key is safe without this line.
   */
  settle(value: T | undefined): Promise<void>;
}

export type Claim<T> = { kind: "first"; first: First<T> } | { kind: "repeated"; value: T };

interface Entry {
  readonly body: string;
  readonly assigned: Deferred;
  readonly settled: Deferred;
  /** Its newest line in the journal. */
  line?: KeyLine;
  kept?: { expiresAt: number; bytes: number };
}

interface Deferred {
  readonly promise: Promise<unknown>;
  resolve(value: unknown): void;
}

/** @returns the answer of a request that came about, undefined when it did not. */
export type Recall = (promised: Promised, answer: unknown) => Promise<unknown>;

export interface KeyOptions {
  maxBytes?: number;
  /** Left out: keys end with the process. */
  durable?: { journal: KeyJournal; recall: Recall };
}

export class IdempotencyKeys {
  readonly #clock: Clock;
  readonly #maxBytes: number;
  readonly #durable: KeyOptions["durable"];
  /** In order of insertion; a kept entry is inserted again when it settles, so kept ones stand by age. */
  readonly #entries = new Map<string, Entry>();
  /** Left by an earlier process, and not known yet whether it came about. */
  readonly #unsure = new Map<string, KeyLine>();
  #bytes = 0;

  constructor(clock: Clock, { maxBytes = MAX_BYTES, durable }: KeyOptions = {}) {
    this.#clock = clock;
    this.#maxBytes = maxBytes;
    this.#durable = durable;
    for (const line of durable?.journal.left ?? []) {
      if (line.at + KEY_KEPT_MS <= clock.now()) continue;
      if (line.promised !== undefined) this.#unsure.set(line.name, line);
      else this.#keep(line.name, settledEntry(line), line);
    }
  }

  /** Finds out what came of the requests that an earlier process left. Those it cannot tell of yet are asked for again. */
  async recover(): Promise<void> {
    for (const name of [...this.#unsure.keys()]) await this.#ask(name).catch(() => {}); // Whoever uses the key is told.
  }

  /**
   * Claims a key for a request. Resolves when it is the first, or when the one before it has answered; one that only
   * wants to look waits until that answer is `assigned`.
   * @throws HttpError when the key was used with another body.
   */
  async claim<T>(scope: Scope, key: string, body: unknown, until: "assigned" | "settled"): Promise<Claim<T>> {
    const name = digest([scope.owner, scope.method, scope.path, key]);
    const wanted = digest(sorted(body));
    for (;;) {
      this.#expire();
      if (this.#unsure.has(name)) await this.#ask(name);
      const entry = this.#entries.get(name);
      if (entry === undefined) return { kind: "first", first: this.#begin<T>(name, wanted) };
      if (entry.body !== wanted) {
        throw new HttpError("idempotency_mismatch", "this Idempotency-Key was used with another body");
      }
      const value = await entry[until].promise;
      if (value !== undefined) return { kind: "repeated", value: value as T };
    }
  }

  #begin<T>(name: string, body: string): First<T> {
    const entry: Entry = { body, assigned: deferred(), settled: deferred() };
    this.#entries.set(name, entry);
    return {
      promise: (promised, answer) => {
        entry.line = { name, body, at: this.#clock.now(), promised, ...(answer === undefined ? {} : { answer }) };
        return this.#write(entry.line);
      },
      assign: (value) => entry.assigned.resolve(value),
      settle: async (value) => {
        await this.#settle(name, entry, value);
        entry.assigned.resolve(value);
        entry.settled.resolve(value);
      },
    };
  }

  async #settle(name: string, entry: Entry, value: unknown): Promise<void> {
    const wasPromised = entry.line !== undefined;
    const line: KeyLine = { name, body: entry.body, at: this.#clock.now() };
    this.#entries.delete(name);
    if (value !== undefined) this.#keep(name, entry, { ...line, answer: value });
    if (!wasPromised) return;
    // Refused or not, what is on record tells: without this line a restart asks once more.
    await this.#write(entry.kept === undefined ? { ...line, isGone: true } : (entry.line as KeyLine)).catch(() => {});
  }

  /** Asks whether a request of an earlier process came about. Rejects when that cannot be told now. */
  async #ask(name: string): Promise<void> {
    const line = this.#unsure.get(name);
    if (line?.promised === undefined || this.#durable === undefined) return;
    const answer = await this.#durable.recall(line.promised, line.answer);
    // Somebody else may have asked meanwhile.
    if (!this.#unsure.delete(name)) return;
    const entry: Entry = { ...settledEntry({ ...line, answer }), line };
    await this.#settle(name, entry, answer);
  }

  #write(line: KeyLine): Promise<void> {
    return this.#durable?.journal.append(line, () => this.#live()) ?? Promise.resolve();
  }

  /** The lines that count, the oldest first. */
  #live(): KeyLine[] {
    this.#expire();
    const lines = [...this.#entries.values()].flatMap(({ line }) => line ?? []);
    return [...this.#unsure.values(), ...lines].sort((a, b) => a.at - b.at);
  }

  #keep(name: string, entry: Entry, line: KeyLine): void {
    const bytes = Buffer.byteLength(JSON.stringify(line.answer)) + ENTRY_BYTES;
    entry.line = line;
    entry.kept = { expiresAt: line.at + KEY_KEPT_MS, bytes };
    this.#entries.set(name, entry);
    this.#bytes += bytes;
    for (const [oldest, { kept }] of this.#entries) {
      if (this.#bytes <= this.#maxBytes) return;
      if (kept !== undefined && oldest !== name) this.#drop(oldest, kept.bytes);
    }
  }

  #expire(): void {
    const now = this.#clock.now();
    for (const [name, { kept }] of this.#entries) {
      if (kept === undefined) continue;
      if (kept.expiresAt > now) return;
      this.#drop(name, kept.bytes);
    }
  }

  #drop(name: string, bytes: number): void {
    this.#entries.delete(name);
    this.#bytes -= bytes;
  }
}

function settledEntry({ body, answer }: KeyLine): Entry {
  const entry: Entry = { body, assigned: deferred(), settled: deferred() };
  entry.assigned.resolve(answer);
  entry.settled.resolve(answer);
  return entry;
}

/** @returns the request's key, or undefined without one. @throws HttpError for one that cannot be a key. */
export function idempotencyKey(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  if (typeof header === "string" && /^[\x20-\x7e]{1,255}$/.test(header)) return header;
  throw new HttpError("invalid_request", "the Idempotency-Key does not fit", {
    details: [{ path: "Idempotency-Key", message: "must be 1 to 255 printable ASCII characters" }],
  });
}

/** Equal JSON values have equal digests: the order of an object's keys is no difference. */
function digest(value: unknown): string {
  return createHash("sha256")
    .update(JSON.stringify(value) ?? "")
    .digest("base64");
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, each]) => [key, sorted(each)]));
}

function deferred(): Deferred {
  let resolve: (value: unknown) => void = () => {};
  const promise = new Promise<unknown>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
