// A Trace in which everything happens that may: parallel calls, a denial, a call cut off by a limit, a failed try and
// its next one, interrupts, images, steering, a child's pointer, compactions of both modes that completed, failed and
// were aborted, the notice of max_turns.

import * as make from "../../src/protocol/builders.js";
import { type OmniMessage, toLine } from "../../src/protocol/message.js";
import type { SessionMetaPayload } from "../../src/protocol/payloads.js";
import { compactor, folded } from "./compaction.js";
import { scriptedModel } from "./engine.js";
import {
  AT,
  aborted,
  allowed,
  begin,
  callOf,
  compacted,
  countsOf,
  denied,
  Meter,
  metaOf,
  notice,
  outputOf,
} from "./messages.js";

/** The model that `hostOn` has. */
export const scriptedMeta = (more: Partial<SessionMetaPayload> = {}): OmniMessage => {
  const meta = metaOf();
  return { ...meta, payload: { ...meta.payload, provider: "test", model_id: "scripted", ...more } };
};

const said = (text: string): OmniMessage => make.assistantText(AT, text);

function firstTasks(meter: Meter): OmniMessage[] {
  return [
    make.userText(AT, "look"),
    make.imageUrl(AT, "data:image/png;base64,AAAA"),
    begin(),
    make.thinking(AT, "two calls", { fidelity: { signature: "sig==", from: "test/scripted" } }),
    callOf("call_A"),
    allowed("call_A"),
    callOf("call_B"),
    outputOf("call_A", "a.txt"),
    ...meter.tail(),
    denied("call_B"),
    outputOf("call_B", "Tool call denied by user.", "aborted"),
    make.asSteering(make.userText(AT, "be quick"), "steer-1"),
    begin(),
    callOf("call_C", '{"cmd":"l', "malformed"),
    ...meter.tail("completed", { truncated: true }),
    outputOf("call_C", "cut off", "failed"),
    begin(),
    ...meter.tail("timeout", { attempt: 1, retry_in_ms: 10, error: { kind: "network", message: "lost" } }),
    begin(),
    said("Done."),
    ...meter.tail("completed", { attempt: 2 }),
    make.userText(AT, "and again"),
    begin(),
    callOf("call_D"),
    make.subagent(AT, "session-child"),
    denied("call_D", "abort"),
    outputOf("call_D", "[interrupted: tool aborted by user]", "aborted"),
    ...meter.tail("aborted"),
    aborted(),
    make.userText(AT, "once more"),
    begin(),
    ...meter.tail(),
    ...notice(1).slice(-1),
    ...compacted("failed", [said("no sum"), meter.usage()]),
    ...compacted("aborted"),
    aborted(),
  ];
}

/** All of it, lawful. Its ordinals are the places. */
export async function richTrace(): Promise<OmniMessage[]> {
  const meter = new Meter();
  const one = compactor([scriptedMeta(), ...firstTasks(meter), make.userText(AT, "waits")], {
    model: scriptedModel([{ steps: [{ say: "All of it." }], outcome: { usage: countsOf(2, 5, 3) } }]),
  });
  await one.run();
  meter.usage();
  const it = folded(one.trace);
  it.append([begin(), said("After."), ...meter.tail(), make.userText(AT, "discard")]);
  it.append([begin(), callOf("call_E"), allowed("call_E"), ...meter.tail(), outputOf("call_E", "e")]);
  const two = compactor(it.trace, { model: scriptedModel([]), settings: { mode: "discard" } });
  await two.run("turns");
  const last = folded(two.trace);
  last.append([begin(), said("Last."), ...meter.tail()]);
  // The contexts after a compaction have the meta of the support's own making.
  return last.trace.map((record) => (record.type === "session_meta" ? scriptedMeta() : record));
}

export const linesOf = (records: readonly OmniMessage[]): string =>
  records.map((record) => `${toLine(record)}\n`).join("");

/** A text as an upload, in pieces of a size. */
export async function* upload(text: string | Uint8Array, size = 1000): AsyncGenerator<Uint8Array, void, void> {
  const bytes = Buffer.from(text as string);
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size);
}
