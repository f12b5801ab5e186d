// Recorded streams of Gemini, when the folder with them is there.

import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { isPayload } from "../../src/protocol/guards.js";
import { contentsOf, fromTrace, type Json, readGemini, segments } from "./gemini-support.js";
import { complete, essence, fromOf, pieces } from "./support.js";

const FROM = fromOf("gemini");

const folder = path.resolve(process.env.OMNID_FIXTURES ?? "../shared/fixtures", "providers");
const isThere = existsSync(path.join(folder, "INDEX.json"));
if (!isThere) console.warn(`recorded Gemini streams are skipped: no ${folder}/INDEX.json`);

interface Recorded {
  id: string;
  file: string;
  expect: {
    status: string;
    status_acceptable: string[];
    finish_reason: string | null;
    text: string;
    tool_calls: { id: string | null; name: string; arguments_value: Json }[];
    segments: Json[];
    usage: Record<string, number> | null;
    fidelity: { kind: string; on: string; value: string }[];
    error?: { message: string };
  };
}

const files: Recorded[] = isThere ? JSON.parse(readFileSync(path.join(folder, "INDEX.json"), "utf8")).files : [];
const streams = files.filter(({ id }) => id.startsWith("gemini/"));
const read = (file: Recorded): Buffer => readFileSync(path.join(folder, file.file));

/** Parts with a signature, as the provider sent them. */
function signedParts(bytes: Buffer): Json[] {
  const events = [...bytes.toString("utf8").matchAll(/^data: (.*)\r?$/gm)].map(([, data]) =>
    JSON.parse(data as string),
  );
  return events
    .flatMap((event) => event.candidates?.[0]?.content?.parts ?? [])
    .filter((part: Json) => part.thoughtSignature !== undefined);
}

describe.skipIf(!isThere)("recorded Gemini streams", () => {
  test.each(streams)("$id is read as its index says", (file) => {
    const { messages, outcome } = readGemini([read(file)]);
    const { expect: right } = file;
    expect(right.status_acceptable).toContain(outcome.status);
    // Nothing but a filter in place of the answer is a failure; the index calls such an end completed.
    const isFiltered = right.text === "" && /SAFETY/.test(right.finish_reason ?? "");
    if (isFiltered) expect(outcome).toMatchObject({ status: "failed", error: { kind: "content_filter" } });
    else expect(outcome.status).toBe(right.status);
    expect(outcome.finishReason ?? null).toBe(right.finish_reason);
    const { cache_read = 0, cache_write = 0, output = 0, total = 0 } = right.usage ?? {};
    expect(outcome.usage).toEqual({ cache_read, cache_write, output, total });
    if (right.error !== undefined) expect(outcome.error?.message).toContain(right.error.message);

    const expected = right.segments.map(({ id: _, ...segment }) => segment);
    const found = segments(messages)
      .filter((segment) => !("part" in segment && segment.part === "text"))
      .map((segment) => {
        if (!("data" in segment) || typeof segment.data !== "string") return segment;
        const { data, ...rest } = segment as { data: string };
        const data_sha256 = createHash("sha256").update(data).digest("hex");
        const bytesOf = createHash("sha256").update(Buffer.from(data, "base64")).digest("hex");
        const told = expected.map((each) => each.data_sha256);
        return { ...rest, data_chars: data.length, data_sha256: told.includes(bytesOf) ? bytesOf : data_sha256 };
      });
    expect(found).toEqual(expected);

    const calls = messages.filter((message) => isPayload(message, "tool_call"));
    right.tool_calls.forEach(({ id, arguments_value }, n) => {
      const payload = calls[n]?.payload;
      expect(JSON.parse(payload?.arguments ?? "")).toEqual(arguments_value);
      if (id === null) expect(payload?.fidelity).toMatchObject({ provider_call_id: null });
      else expect(payload?.tool_call_id).toBe(id);
    });
    const kept = complete(messages).map((message) => (message.payload as { fidelity?: Json }).fidelity);
    for (const { kind, value } of right.fidelity) {
      expect(kept).toContainEqual(expect.objectContaining({ [kind]: value, from: FROM }));
    }
  });

  test.each(streams)("F5 F8: $id goes back through a Trace with each signature in the part it came in", (file) => {
    const bytes = read(file);
    const { messages, outcome } = readGemini([bytes]);
    if (outcome.status !== "completed") return;
    const sent = contentsOf(fromTrace(messages), { modelId: "one" })
      .filter(({ role }) => role === "model")
      .flatMap(({ parts }) => parts);
    const again = sent.filter((part) => part.thoughtSignature !== undefined);
    const first = signedParts(bytes);
    expect(again).toHaveLength(first.length);
    again.forEach((part, n) => {
      const came = first[n] as Json & { functionCall?: Json };
      // Streamed arguments come in pieces: the signed part is the first of them.
      if (came.functionCall?.willContinue === true) {
        expect(part).toMatchObject({
          functionCall: { name: came.functionCall.name },
          thoughtSignature: came.thoughtSignature,
        });
      } else expect(part).toEqual(came);
    });
  });

  test.each(streams)("B3: $id reads the same cut at every byte, and a byte at a time", (file) => {
    const bytes = read(file);
    const stable = (chunks: Iterable<Uint8Array>) => {
      // Ids that the provider left out are made anew in each reading.
      const text = JSON.stringify(essence(readGemini(chunks)));
      return text.replace(/"tool_call_id":"call_fresh\d+"/g, '"tool_call_id":"made"');
    };
    const whole = stable([bytes]);
    expect(stable(pieces(bytes, 1))).toEqual(whole);
    for (let shift = 0; shift < 7; shift++) {
      expect(stable([bytes.subarray(0, shift), ...pieces(bytes.subarray(shift), 7)])).toEqual(whole);
    }
  });

  test.each(streams)("F15: $id cut after any event is never complete before its end mark", (file) => {
    const frames = read(file)
      .toString("utf8")
      .split(/(?<=\n\r?\n)/);
    for (let count = 0; count < frames.length; count++) {
      const part = frames.slice(0, count).join("");
      const { messages, outcome } = readGemini([Buffer.from(part)]);
      if (!/"finishReason": ?"|"blockReason": ?"/.test(part)) expect(outcome.status).toBe("malformed");
      for (const message of complete(messages)) {
        if (!isPayload(message, "tool_call") || message.payload.stop_reason !== undefined) continue;
        expect(typeof JSON.parse(message.payload.arguments)).toBe("object");
      }
    }
  });
});
