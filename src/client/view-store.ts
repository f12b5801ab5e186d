// Holds the present View and tells whoever looks at it. Subscribers hear once of all that came together; those who
// iterate get every step, in order, and what feeds the store waits for them.

import { Listeners, type OnError } from "./listeners.js";
import { OmnidError } from "./omnid-error.js";
import { Steps } from "./steps.js";
import { emptyView, reduceView } from "./view.js";
import type { View, ViewAction } from "./view-types.js";

/** What came, and the view with it. */
export type FollowStep = ViewAction & { readonly view: View };

export class ViewStore {
  readonly steps = new Steps<FollowStep>();
  readonly #listeners: Listeners;
  #view: View;
  #told: View;
  #offered: Promise<void> = Promise.resolve();

  /** @param onError is given what a subscriber throws */
  constructor(view: View, onError?: OnError) {
    this.#listeners = new Listeners(onError);
    this.#view = view;
    this.#told = view;
  }

  get view(): View {
    return this.#view;
  }

  readonly subscribe = (listener: () => void): (() => void) => this.#listeners.add(listener);

  /** Takes what happened. Resolves when everyone who iterates has it. */
  take(...actions: readonly ViewAction[]): Promise<void> {
    const offers = actions.map((action) => {
      this.#view = reduced(this.#view, action);
      return this.#offer(action);
    });
    this.#tell();
    return offers.at(-1) ?? this.#offered;
  }

  /**
   * Takes what came together, until one of it makes the view stale: the rest is not known to fit. One that cannot be
   * taken does so too: the history is read again, behind it.
   * @throws OmnidError of that one
   */
  async takeAll(actions: Iterable<ViewAction>): Promise<void> {
    for (const action of actions) {
      try {
        this.#view = reduceView(this.#view, action);
      } catch (cause) {
        void this.take({ type: "stale", reason: "unreadable" });
        throw new OmnidError("unreadable", `the stream holds a ${action.type} that cannot be taken`, { cause });
      }
      if (this.steps.isRead) {
        this.#tell();
        await this.#offer(action);
      }
      if (this.#view.stale !== null) break;
    }
    this.#tell();
  }

  end(): void {
    this.#tell();
    this.steps.end();
    this.#listeners.clear();
  }

  /** One after the other, in the order in which they were taken. */
  #offer(action: ViewAction): Promise<void> {
    if (!this.steps.isRead) return this.#offered;
    const step = { ...action, view: this.#view };
    this.#offered = this.#offered.then(() => this.steps.offer(step));
    return this.#offered;
  }

  #tell(): void {
    if (this.#view === this.#told) return;
    this.#told = this.#view;
    this.#listeners.tell();
  }
}

/** A history that does not go with what is known is taken alone: it is the truth, and would never be taken otherwise. */
function reduced(view: View, action: ViewAction): View {
  if (action.type !== "history") return reduceView(view, action);
  try {
    return reduceView(view, action);
  } catch {
    // Where the history itself is at fault, this throws the same.
    const { sessionId, session, connection } = view;
    return reduceView({ ...emptyView(sessionId), session, connection }, action);
  }
}
