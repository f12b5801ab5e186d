// What the rings of all Channels of a process may hold together. When it is exceeded, the ring that was used least
// recently gives first, down to its newest message; the one that is being published to gives last.
//
// Invariants: nothing goes that a ring must keep: its newest message, and what readers that keep up do not have yet. A
// ring that held back something for its readers gives it as soon as they have it, and one that kept a large newest message
// gives that with the next. A pass makes room for many messages, so that its cost is shared by them.

/** What a ring holds after it was asked to give, and whether it will have more to give once its readers are served. */
export interface Shed {
  readonly held: number;
  readonly isOwing: boolean;
}

/** A pass frees this part of the budget more than it must, and one that freed too little is not repeated before. */
const SLACK = 1 / 16;
/** Nor before so many messages, which may have made something older free to go. */
const PATIENCE = 256;

export class ReplayBudget {
  readonly #maxBytes: number;
  readonly #slack: number;
  readonly #shares = new Set<BudgetShare>();
  #bytes = 0;
  #uses = 0;
  /** A pass is due above this many bytes, */
  #limit: number;
  /** or, where there is too much, after this many uses. */
  #patience = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
    this.#slack = Math.floor(maxBytes * SLACK);
    this.#limit = maxBytes;
  }

  /** What all rings hold now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** How many rings there are. */
  get size(): number {
    return this.#shares.size;
  }

  /** Adds a ring, which holds nothing yet. `shed` gives as many bytes as it is asked for, or what may go. */
  join(shed: (bytes: number) => Shed): BudgetShare {
    const share: BudgetShare = new BudgetShare({
      shed,
      use: () => ++this.#uses,
      change: (by, isDue) => this.#change(by, isDue),
      isLarge: (bytes) => bytes > this.#slack,
      pass: () => this.#pass(),
      leave: () => this.#shares.delete(share),
    });
    this.#shares.add(share);
    return share;
  }

  #change(by: number, isDue: boolean): void {
    this.#bytes += by;
    if (this.#bytes <= this.#maxBytes) this.#limit = this.#maxBytes;
    else if (isDue || this.#bytes > this.#limit || this.#uses >= this.#patience) this.#pass();
  }

  #pass(): void {
    if (this.#bytes <= this.#maxBytes) return;
    const target = this.#maxBytes - this.#slack;
    for (const share of [...this.#shares].sort((a, b) => a.usedAt - b.usedAt)) {
      if (this.#bytes <= target) break;
      this.#bytes -= share.shed(this.#bytes - target);
    }
    const isEnough = this.#bytes <= this.#maxBytes;
    this.#limit = isEnough ? this.#maxBytes : this.#bytes + this.#slack;
    this.#patience = this.#uses + PATIENCE;
  }
}

interface Membership {
  shed(bytes: number): Shed;
  use(): number;
  /** `isDue`: a pass may free much now that could not before. */
  change(by: number, isDue: boolean): void;
  isLarge(bytes: number): boolean;
  pass(): void;
  leave(): void;
}

/** One ring's part of the budget. */
export class BudgetShare {
  readonly #membership: Membership;
  #bytes = 0;
  #hasLeft = false;
  #isOwing = false;
  /** The newest message was large and had to stay when more was asked for than there was. */
  #keepsLarge = false;
  /** Grows with each use of any ring. */
  usedAt: number;

  constructor(membership: Membership) {
    this.#membership = membership;
    this.usedAt = membership.use();
  }

  /** True while something could go if the readers that keep up had it. Serve them, then `settle`. */
  get isOwing(): boolean {
    return this.#isOwing;
  }

  /** Says what the ring holds now that something was published. */
  hold(bytes: number): void {
    if (this.#hasLeft) return;
    const by = bytes - this.#bytes;
    const isDue = this.#keepsLarge;
    this.#bytes = bytes;
    this.#keepsLarge = false;
    this.usedAt = this.#membership.use();
    this.#membership.change(by, isDue);
  }

  /** Says that somebody reads from the ring. */
  touch(): void {
    this.usedAt = this.#membership.use();
  }

  /** Gives what is owed. */
  settle(): void {
    if (!this.#isOwing) return;
    this.#isOwing = false;
    this.#membership.pass();
  }

  /** The ring is gone, or will be soon. Safe to call twice. */
  leave(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#membership.leave();
    this.#membership.change(-this.#bytes, false);
  }

  /** @returns the bytes that were freed. */
  shed(bytes: number): number {
    const before = this.#bytes;
    const { held, isOwing } = this.#membership.shed(bytes);
    this.#bytes = held;
    this.#isOwing = isOwing;
    this.#keepsLarge = before - held < bytes && this.#membership.isLarge(held);
    return before - held;
  }
}
