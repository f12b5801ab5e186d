// Stream order = Trace order. Without fragments and children's messages the stream is the Trace without its own records:
// session_meta, Prompt, steering, and what a compaction said.

import { isDeepStrictEqual } from "node:util";
import { isPartial, isPayload, isSessionMeta } from "../guards.js";
import type { OmniMessage } from "../message.js";
import { isUserInput } from "./facts.js";

export interface OrderFault {
  /** Index in the stream; its length where the Trace has more. */
  place: number;
  message: string;
}

/**
 * Compares a stream with the Trace of the same Session.
 * @param options.joined the stream begins midway: it is looked for in the Trace.
 * @param options.running the Trace was read later than the stream and may have more at its end.
 * @returns the first difference, or undefined.
 */
export function streamOrder(
  stream: readonly OmniMessage[],
  trace: readonly OmniMessage[],
  options: { joined?: boolean; running?: boolean } = {},
): OrderFault | undefined {
  const said = [...stream.entries()].filter(([, m]) => !isPartial(m) && (m.origin ?? []).length === 0);
  const records = shown(trace);
  const first = said[0];
  if (options.joined !== true || first === undefined) return follow(stream.length, said, records, 0, options);
  // Equal records recur (two request_begin of one millisecond), so each place where the stream may begin is tried.
  let furthest: OrderFault = { place: first[0], message: `${nameOf(first[1])} is not in the Trace` };
  for (const [at, { message }] of records.entries()) {
    if (!isDeepStrictEqual(message, first[1])) continue;
    const fault = follow(stream.length, said, records, at, options);
    if (fault === undefined) return undefined;
    if (fault.place > furthest.place) furthest = fault;
  }
  return furthest;
}

interface Shown {
  message: OmniMessage;
  isOptional: boolean;
}

function follow(
  length: number,
  said: readonly [number, OmniMessage][],
  records: readonly Shown[],
  from: number,
  options: { running?: boolean },
): OrderFault | undefined {
  let at = from;
  for (const [place, message] of said) {
    while (records[at]?.isOptional === true && !isDeepStrictEqual(records[at]?.message, message)) at += 1;
    const record = records[at]?.message;
    if (record === undefined) return { place, message: `${nameOf(message)} is not in the Trace` };
    if (!isDeepStrictEqual(record, message)) {
      return { place, message: `the stream has ${nameOf(message)} where the Trace has ${nameOf(record)}` };
    }
    at += 1;
  }
  const rest = records.slice(at).find((record) => !record.isOptional);
  if (rest === undefined || options.running === true) return undefined;
  return { place: length, message: `${nameOf(rest.message)} is in the Trace and not on the stream` };
}

/** The records that a reader of the stream sees; the usage of a compaction's tries may be shown or not. */
function shown(trace: readonly OmniMessage[]): Shown[] {
  const records: Shown[] = [];
  let isCompacting = false;
  for (const message of trace) {
    if (isPayload(message, "compaction_end")) isCompacting = false;
    if (isCompacting) {
      if (isPayload(message, "token_usage")) records.push({ message, isOptional: true });
    } else if (!isSessionMeta(message) && !isUserInput(message)) records.push({ message, isOptional: false });
    if (isPayload(message, "compaction_begin")) isCompacting = true;
  }
  return records;
}

const nameOf = (message: OmniMessage): string => {
  const { type, tool_call_id: id } = message.payload as { type?: unknown; tool_call_id?: unknown };
  return `${String(type ?? message.type)}${id === undefined ? "" : ` of ${JSON.stringify(id)}`}`;
};
