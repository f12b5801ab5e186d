// `GET /api/events`: what happens to the Sessions of one owner, for lists that stay current. No ids and no replay.

import { Channel, type ChannelOptions } from "../channel/channel.js";
import type { Sink } from "../channel/subscription.js";
import { toLine } from "../protocol/message.js";
import type { Owner, SessionView } from "./types.js";

/** A reader that falls this far behind has to list the Sessions again. */
const MAX_EVENTS = 1000;
const MAX_BYTES = 1_048_576;

/** One announcing Channel for each owner that has readers or had some; owners are as many as tokens. */
export class OwnerEvents {
  readonly #options: Omit<ChannelOptions, "maxEvents" | "maxBytes" | "epoch">;
  readonly #channels = new Map<Owner, Channel>();

  constructor(options: Omit<ChannelOptions, "maxEvents" | "maxBytes" | "epoch">) {
    this.#options = options;
  }

  created(owner: Owner, session: SessionView): void {
    this.#announce(owner, { type: "session_created", session });
  }

  updated(owner: Owner, session: SessionView): void {
    this.#announce(owner, { type: "session_updated", session });
  }

  deleted(owner: Owner, sessionId: string): void {
    this.#announce(owner, { type: "session_deleted", sessionId });
  }

  follow(owner: Owner, sink: Sink): void {
    let channel = this.#channels.get(owner);
    if (channel === undefined) {
      channel = new Channel({ ...this.#options, maxEvents: MAX_EVENTS, maxBytes: MAX_BYTES });
      this.#channels.set(owner, channel);
    }
    channel.subscribe(sink, { snapshot: () => ({ events: [] }) });
  }

  /** Ends every stream after `final`, the JSON of a server event. */
  end(final: string): void {
    for (const channel of this.#channels.values()) channel.end(final);
  }

  #announce(owner: Owner, event: object): void {
    const channel = this.#channels.get(owner);
    if (channel !== undefined && channel.subscribers > 0) channel.announce(toLine(event));
  }
}
