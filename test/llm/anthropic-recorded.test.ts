// Recorded streams of the Messages protocol, when the folder with them is there.

import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { anthropicMessages } from "../../src/llm/wire/anthropic-messages.js";
import { userText } from "../../src/protocol/builders.js";
import { isPayload } from "../../src/protocol/guards.js";
import type { CompleteMessage } from "../../src/protocol/message.js";
import { parseMessage, toLine } from "../../src/protocol/message.js";
import { AT, complete, decodeChunks, decodeText, essence, fromOf, llmRequest, modelSpec, pieces } from "./support.js";

const FROM = fromOf("anthropic-messages");

const folder = path.resolve(process.env.OMNID_FIXTURES ?? "../shared/fixtures", "providers");
const isThere = existsSync(path.join(folder, "INDEX.json"));
if (!isThere) console.warn(`recorded anthropic-messages streams are skipped: no ${folder}/INDEX.json`);

type Json = Record<string, unknown>;
interface Recorded {
  id: string;
  file: string;
  expect: {
    status: string;
    status_acceptable: string[];
    finish_reason: string | null;
    segments: (Json & { type: string; unclosed?: boolean })[];
    usage: Json | null;
    fidelity: { kind: string; value: string }[];
    error?: { message: string };
  };
}

const files: Recorded[] = isThere ? JSON.parse(readFileSync(path.join(folder, "INDEX.json"), "utf8")).files : [];
const streams = files.filter(({ id }) => id.startsWith("anthropic-messages/"));
const bytesOf = (file: Recorded): Buffer => readFileSync(path.join(folder, file.file));
const wire = anthropicMessages;
const read = (bytes: Uint8Array) => decodeChunks([bytes], { wire });

const isSplice = ({ id }: Recorded): boolean => id.includes("spliced");

/** Segments as they are expected of us: hidden thinking has no text, and opaque blocks make no segment. */
function expectedSegments(file: Recorded): Json[] {
  const { segments } = file.expect;
  // Of two answers in one, nothing behind the first is read.
  const read = isSplice(file) ? segments.slice(0, 2) : segments;
  return read
    .filter(({ type }) => type !== "opaque")
    .map(({ unclosed: _unclosed, ...segment }) =>
      segment.type === "redacted_thinking" ? { type: "thinking", thinking: "" } : segment,
    );
}

const blocksBefore = (message: { payload: object }): Json[] =>
  (((message.payload as Json).fidelity as Json | undefined)?.blocks_before as Json[] | undefined) ?? [];

/** A message that carries opaque blocks behind the last segment, and nothing else. */
const isCarrier = (message: { payload: object }): boolean => {
  const { type, thinking, fidelity } = message.payload as Json;
  return type === "thinking" && thinking === "" && Object.keys(fidelity as Json).every((k) => /before|from/.test(k));
};

function segments(messages: readonly { payload: object }[]): Json[] {
  return messages
    .filter((message) => !isCarrier(message))
    .map(({ payload }) => {
      const { type, text, thinking, tool_call_id: id, name, arguments: args } = payload as Json;
      if (type === "text") return { type, text };
      return type === "thinking" ? { type, thinking } : { type, id, name, arguments: args };
    });
}

/** The blocks of these types as the stream starts them. */
function startsOf(file: Recorded, blocks: Json[]): Json[] {
  const types = new Set(blocks.map(({ type }) => type));
  return [
    ...bytesOf(file)
      .toString("utf8")
      .matchAll(/^data: (.*"content_block_start".*)$/gm),
  ]
    .map(([, data]) => JSON.parse(data as string).content_block as Json)
    .filter(({ type }) => types.has(type));
}

describe.skipIf(!isThere)("recorded anthropic-messages streams", () => {
  test.each(streams)("$id is read as its index says", (file) => {
    const { messages, outcome } = read(bytesOf(file));
    const { expect: right } = file;
    const said = complete(messages);
    expect(right.status_acceptable).toContain(outcome.status);
    expect(outcome.finishReason ?? null).toBe(right.finish_reason);
    expect(segments(said)).toEqual(expectedSegments(file));
    expect(outcome.usage).toEqual(right.usage ?? { cache_read: 0, cache_write: 0, output: 0, total: 0 });
    if (right.error !== undefined) expect(outcome.error?.message).toBe(right.error.message);
    const kept = said.flatMap(({ payload }) => {
      const { signature, redacted_thinking, from } = ((payload as Json).fidelity ?? {}) as Json;
      expect(from ?? FROM).toBe(FROM);
      if (signature !== undefined) return { kind: "thinking_signature", value: signature };
      return redacted_thinking === undefined ? [] : { kind: "redacted_thinking", value: redacted_thinking };
    });
    const given = right.fidelity.map(({ kind, value }) => ({ kind, value }));
    expect(kept).toEqual(isSplice(file) ? given.slice(0, 1) : given);
  });

  test.each(streams)("$id keeps what only the provider understands, in its place", (file) => {
    const said = complete(read(bytesOf(file)).messages);
    const places = said.flatMap((message) => [
      ...blocksBefore(message).map(({ type }) => type),
      ...(isCarrier(message) ? [] : ["segment"]),
    ]);
    const { segments: right } = file.expect;
    expect(places).toEqual(
      (isSplice(file) ? right.slice(0, 2) : right).map(({ type, block_type }) =>
        type === "opaque" ? block_type : "segment",
      ),
    );
    const opaque = right.filter(({ type }) => type === "opaque");
    const kept = said.flatMap(blocksBefore);
    expect(kept.map((block) => JSON.stringify(block))).toEqual(
      startsOf(file, kept).map((start, n) => {
        const { input_json, content } = opaque[n] as Json;
        if (typeof input_json === "string") return JSON.stringify({ ...start, input: JSON.parse(input_json) });
        return JSON.stringify(content === undefined ? start : { ...start, content });
      }),
    );
  });

  test.each(streams)("B3: $id reads the same cut at every byte, and a byte at a time", (file) => {
    const bytes = bytesOf(file);
    const decode = (chunks: Iterable<Uint8Array>) => essence(decodeChunks(chunks, { wire }));
    const whole = decode([bytes]);
    expect(decode(pieces(bytes, 1))).toEqual(whole);
    // Shifts of seven-byte pieces: a cut at each offset, once.
    for (let shift = 0; shift < 7; shift++) {
      expect(decode([bytes.subarray(0, shift), ...pieces(bytes.subarray(shift), 7)])).toEqual(whole);
    }
  });

  test.each(streams)("F15: $id cut after any event is not complete, and no half of a call is", (file) => {
    const frames = bytesOf(file)
      .toString("utf8")
      .split(/(?<=\n\n)/);
    for (let count = 0; count < frames.length; count++) {
      const { messages, outcome } = decodeText(frames.slice(0, count).join(""), { wire });
      if (frames.slice(0, count).every((frame) => !frame.includes('"message_stop"'))) {
        expect(outcome.status).not.toBe("completed");
      }
      for (const message of complete(messages)) {
        if (!isPayload(message, "tool_call") || message.payload.stop_reason !== undefined) continue;
        expect(JSON.parse(message.payload.arguments || "{}")).toBeTypeOf("object");
      }
    }
  });

  test.each(streams)("F5: $id goes back byte for byte and in order after a Trace", (file) => {
    const { messages } = read(bytesOf(file));
    const stored = complete(messages).map((message) => {
      const parsed = parseMessage(JSON.parse(toLine(message)));
      if ("problems" in parsed) throw new Error(parsed.problems.join("\n"));
      return parsed.message as CompleteMessage;
    });
    const request = llmRequest({ messages: [userText(AT, "go"), ...stored] });
    const { body } = anthropicMessages.encode(request, modelSpec({ protocol: "anthropic-messages" }));
    const sent = (JSON.parse(body).messages as { role: string; content: Json[] }[])
      .filter(({ role }) => role === "assistant")
      .flatMap(({ content }) => content.flatMap(({ signature, data }) => signature ?? data ?? []));
    const given = file.expect.fidelity.map(({ value }) => value);
    expect(sent).toEqual(isSplice(file) ? given.slice(0, 1) : given);
  });
});
