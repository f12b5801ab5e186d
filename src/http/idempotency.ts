// Idempotency-Key: the same key with an equal body gives the first 2xx answer again and starts nothing. Kept in memory
// for a day. Bounded: past `maxBytes` the oldest kept answers go first; those in flight are bounded by their connections.

import { createHash } from "node:crypto";
import type { Clock } from "../clock.js";
import { HttpError } from "./errors.js";

const KEPT_MS = 24 * 60 * 60 * 1000;
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
  /** The answer is certain, though not yet recorded: those that only want to look may go on. */
  assign(value: T): void;
  /** The final answer, or undefined when there is none to keep: then the next request with the key is the first. */
  settle(value: T | undefined): void;
}

export type Claim<T> = { kind: "first"; first: First<T> } | { kind: "repeated"; value: T };

interface Entry {
  readonly body: string;
  readonly assigned: Deferred;
  readonly settled: Deferred;
  kept?: { expiresAt: number; bytes: number };
}

interface Deferred {
  readonly promise: Promise<unknown>;
  resolve(value: unknown): void;
}

export class IdempotencyKeys {
  readonly #clock: Clock;
  readonly #maxBytes: number;
  /** In order of insertion; a kept entry is inserted again when it settles, so kept ones stand by age. */
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;

  constructor(clock: Clock, maxBytes: number = MAX_BYTES) {
    this.#clock = clock;
    this.#maxBytes = maxBytes;
  }

  /**
   * Claims a key. Waits while the first request with it is in flight: until its answer is `assigned` or `settled`.
   * @throws HttpError when the key was used with another body.
   */
  async claim<T>(scope: Scope, key: string, body: unknown, until: "assigned" | "settled"): Promise<Claim<T>> {
    const name = digest([scope.owner, scope.method, scope.path, key]);
    const wanted = digest(sorted(body));
    for (;;) {
      this.#expire();
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
      assign: (value) => entry.assigned.resolve(value),
      settle: (value) => {
        this.#entries.delete(name);
        if (value !== undefined) this.#keep(name, entry, Buffer.byteLength(JSON.stringify(value)) + ENTRY_BYTES);
        entry.assigned.resolve(value);
        entry.settled.resolve(value);
      },
    };
  }

  #keep(name: string, entry: Entry, bytes: number): void {
    entry.kept = { expiresAt: this.#clock.now() + KEPT_MS, bytes };
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
