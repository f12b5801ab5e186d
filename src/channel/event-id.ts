// The name of a place in a Channel: `<epoch>-<seq>`. Both are decimal numbers, so an id is also a valid Redis Stream id.
// An id arrives in a header or a query: it is hostile input until it has been parsed here.

export interface EventId {
  /** This life of the Channel; larger in each later life. */
  readonly epoch: number;
  /** The number of an OmniMessage, from 1; 0 is the place before the first. */
  readonly seq: number;
}

/** ASCII digits only, one spelling a number: no sign, no leading zero. The length is bounded by what a header may hold. */
const ID = /^(0|[1-9][0-9]{0,299})-(0|[1-9][0-9]{0,299})$/;

export function formatEventId(epoch: number, seq: number): string {
  return `${epoch}-${seq}`;
}

/**
 * Reads an id as a client sent it.
 * Numbers above 2^53 lose digits here; they stay above every number that was ever given out, so comparing them is safe.
 * @returns undefined when it is not an id at all.
 */
export function parseEventId(text: string): EventId | undefined {
  const match = ID.exec(text);
  return match ? { epoch: Number(match[1]), seq: Number(match[2]) } : undefined;
}
