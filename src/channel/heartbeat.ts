// One heartbeat for all streams of the process: a timing wheel with one timer, however many readers there are.
// A reader that was written to is not visited early: its visit moves on, so a silence lasts `intervalMs` at most.

/** Time, as the wheel needs it. */
export interface HeartbeatClock {
  /** Milliseconds that never go back. */
  monotonic(): number;
  /** Calls `run` once after `ms`; the returned function cancels it. */
  after(ms: number, run: () => void): () => void;
}

/** One stream's place on the wheel. */
export interface Heartbeat {
  /** Says that the stream carried bytes just now. */
  touch(): void;
  leave(): void;
}

interface Member extends Heartbeat {
  readonly beat: () => void;
  touchedAt: number;
  slot: Set<Member>;
}

const SLOTS = 16;

export class HeartbeatWheel {
  readonly #clock: HeartbeatClock;
  readonly #tickMs: number;
  readonly #slots: readonly Set<Member>[] = Array.from({ length: SLOTS }, () => new Set<Member>());
  #tick = 0;
  #members = 0;
  #cancel: (() => void) | undefined;

  constructor(options: { intervalMs: number; clock: HeartbeatClock }) {
    this.#clock = options.clock;
    this.#tickMs = Math.max(1, options.intervalMs / SLOTS);
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  /** Calls `beat` whenever nobody touched the returned heartbeat for `intervalMs`. `beat` must not throw. */
  join(beat: () => void): Heartbeat {
    const slot = this.#slotOf(this.#tick);
    const member: Member = {
      beat,
      touchedAt: this.#tick,
      slot,
      touch: () => {
        member.touchedAt = this.#tick;
      },
      leave: () => this.#leave(member),
    };
    slot.add(member);
    this.#members += 1;
    this.#cancel ??= this.#clock.after(this.#tickMs, () => this.#turn());
    return member;
  }

  #turn(): void {
    this.#tick += 1;
    this.#cancel = this.#clock.after(this.#tickMs, () => this.#turn());
    const slot = this.#slotOf(this.#tick);
    for (const member of [...slot]) {
      // A beat before this one may have ended this stream.
      if (!slot.has(member)) continue;
      if (this.#tick - member.touchedAt >= SLOTS) {
        member.touchedAt = this.#tick;
        member.beat();
      } else {
        slot.delete(member);
        member.slot = this.#slotOf(member.touchedAt);
        member.slot.add(member);
      }
    }
  }

  #leave(member: Member): void {
    if (!member.slot.delete(member)) return;
    this.#members -= 1;
    if (this.#members > 0) return;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  /** Where a reader touched at `tick` is due: the same slot, one round later. */
  #slotOf(tick: number): Set<Member> {
    return this.#slots[tick % SLOTS] as Set<Member>;
  }
}
