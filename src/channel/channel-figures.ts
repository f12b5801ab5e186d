// Figures of all Channels of a process: plain numbers that the Channels move and that somebody reads when asked, since a
// call for each event and reader would cost more than the delivery.

export class ChannelFigures {
  /** OmniMessages. */
  published = 0;
  /** Server events. */
  announced = 0;
  /** Events handed to a connection: one for each reader. */
  delivered = 0;
  /** The same in bytes of the stream. */
  deliveredBytes = 0;
  /** Connections that went on from an id whose gap was still there. */
  replays = 0;
  /** Messages that left a ring because of its own bounds. */
  evicted = 0;
  /** The same because of what all rings hold together. */
  evictedByBudget = 0;
  readers = 0;
  /** Readers that took nothing since their queue was full. */
  blocked = 0;
}
