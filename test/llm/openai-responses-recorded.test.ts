// Recorded streams of real providers, when the folder with them is there.

import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { encodeResponses } from "../../src/llm/wire/openai-responses-encode.js";
import { toolCallOutput, userText } from "../../src/protocol/builders.js";
import { isCompleteModelMessage, isPayload } from "../../src/protocol/guards.js";
import { type CompleteMessage, type OmniMessage, parseMessage, toLine } from "../../src/protocol/message.js";
import { expectRules, type Item } from "./openai-responses-rules.js";
import { decodeBytes, decodeResponses, hasEnding, spec } from "./openai-responses-support.js";
import { AT, complete, essence, fromOf, llmRequest, pieces, segmentsOf } from "./support.js";

const FROM = fromOf("openai-responses");

const folder = path.resolve(process.env.OMNID_FIXTURES ?? "../shared/fixtures", "providers");
const isThere = existsSync(path.join(folder, "INDEX.json"));
if (!isThere) console.warn(`recorded provider streams are skipped: no ${folder}/INDEX.json`);

interface Kept {
  kind: string;
  value?: string;
  id?: string;
  encrypted_content?: string | null;
  encrypted_content_in_terminal_event?: string;
  summary?: string[];
}

interface Recorded {
  id: string;
  file: string;
  expect: {
    status: string;
    status_acceptable: string[];
    finish_reason: string | null;
    segments: Record<string, string>[];
    usage: Record<string, number> | null;
    fidelity: Kept[];
    error?: { message: string };
    refusal?: string;
  };
}

const files: Recorded[] = isThere ? JSON.parse(readFileSync(path.join(folder, "INDEX.json"), "utf8")).files : [];
const streams = files.filter((file) => file.id.startsWith("openai-responses/"));
const read = (file: Recorded): Buffer => readFileSync(path.join(folder, file.file));
const encrypted = (file: Recorded): Kept[] => file.expect.fidelity.filter((kept) => kept.encrypted_content);

/** Without the segments that hold nothing to see: of those, only hidden reasoning is a message. */
const shown = (segments: Record<string, string>[]) =>
  segments
    .map(({ type, text, thinking, id, name, arguments: args }) =>
      type === "tool_call"
        ? { type, id, name, arguments: args }
        : type === "text"
          ? { type, text }
          : { type, thinking },
    )
    .filter((segment) => segment.text !== "" && segment.thinking !== "");

describe.skipIf(!isThere)("recorded openai-responses streams", () => {
  test.each(streams)("$id is read as its index says", (file) => {
    const { messages, outcome } = decodeResponses([read(file)]);
    const { expect: right } = file;
    expect(right.status_acceptable).toContain(outcome.status);
    // A refusal in place of an answer is a filter of the provider's; its text is the error's.
    if (right.refusal !== undefined) {
      expect(outcome).toMatchObject({ status: "failed", error: { kind: "content_filter", message: right.refusal } });
    } else expect(outcome.status).toBe(right.status);
    expect(outcome.finishReason ?? null).toBe(right.finish_reason);
    expect(shown(segmentsOf(messages))).toEqual(shown(right.segments));
    const { cache_read = 0, cache_write = 0, output = 0, total = 0 } = right.usage ?? {};
    expect(outcome.usage).toMatchObject({ cache_read, cache_write, output, total });
    if (right.error !== undefined) expect(outcome.error?.message).toContain(right.error.message);
  });

  test.each(streams)("F5: $id keeps its phases and its encrypted reasoning byte for byte", (file) => {
    const { messages } = decodeResponses([read(file)]);
    const thoughts = complete(messages).filter((message) => isPayload(message, "thinking"));
    const hidden = thoughts.filter((message) => message.payload.fidelity?.encrypted_content !== undefined);
    expect(hidden).toHaveLength(encrypted(file).length);
    encrypted(file).forEach((kept, n) => {
      const { id, encrypted_content, summary } = kept;
      expect(hidden[n]?.payload.fidelity).toMatchObject({
        ...{ id, encrypted_content, from: FROM },
        summary: summary?.map((text) => ({ type: "summary_text", text })),
      });
    });
    const texts = complete(messages).filter((message) => isPayload(message, "text"));
    const phases = file.expect.segments.filter(({ type, text }) => type === "text" && text !== "");
    expect(texts.map(({ payload }) => payload.fidelity?.phase)).toEqual(phases.map(({ phase }) => phase));
  });

  test.each(streams)("B3: $id reads the same split in two at every byte, and a byte at a time", (file) => {
    const bytes = read(file);
    const whole = essence(decodeResponses([bytes]));
    expect(essence(decodeResponses(pieces(bytes, 1)))).toEqual(whole);
    // Seven shifts of seven-byte pieces: a cut at each offset, once.
    for (let shift = 0; shift < 7; shift++) {
      const chunks = [bytes.subarray(0, shift), ...pieces(bytes.subarray(shift), 7)];
      expect(essence(decodeResponses(chunks))).toEqual(whole);
    }
  });

  test.each(streams)("F15: $id cut after any event is malformed until the response says how it ended", (file) => {
    const frames = read(file)
      .toString("utf8")
      .split(/(?<=\n\n)/);
    for (let count = 0; count < frames.length; count++) {
      const part = frames.slice(0, count).join("");
      const { messages, outcome } = decodeBytes(part);
      if (!hasEnding(part)) expect(outcome.status).toBe("malformed");
      for (const message of complete(messages)) {
        if (!isPayload(message, "tool_call") || message.payload.stop_reason !== undefined) continue;
        expect(part).toContain('"status":"completed"');
        expect(typeof JSON.parse(message.payload.arguments)).toBe("object");
      }
    }
  });

  test.each(streams)("F5: $id stored as lines and sent again stands in its order, byte for byte", (file) => {
    const { messages, outcome } = decodeResponses([read(file)]);
    if (outcome.status !== "completed") return;
    const said = complete(messages).filter(isCompleteModelMessage);
    const outputs = said.flatMap(({ payload }) =>
      payload.type === "tool_call" ? [toolCallOutput(AT, { output: "21", tool_call_id: payload.tool_call_id })] : [],
    );
    const history = [userText(AT, "go"), ...said, ...outputs, userText(AT, "and?")].map(throughATrace);
    const { body } = encodeResponses(llmRequest({ messages: history }), spec());
    const { input } = JSON.parse(body) as { input: Item[] };
    expectRules(input);
    const sent = input.filter(
      ({ type, role }) => type === "reasoning" || type === "function_call" || role === "assistant",
    );
    expect(
      sent.map(({ type, call_id, phase, encrypted_content }) => [type, call_id ?? phase ?? encrypted_content]),
    ).toEqual(
      file.expect.segments.flatMap(({ type, id, phase, text, thinking }) => {
        if (type === "text") return text === "" ? [] : [["message", phase]];
        if (type === "tool_call") return [["function_call", id]];
        const kept = encrypted(file).find(({ summary }) => summary?.join("\n\n") === thinking);
        return kept === undefined ? [] : [["reasoning", kept.encrypted_content]];
      }),
    );
    for (const { encrypted_content } of encrypted(file)) expect(body).toContain(JSON.stringify(encrypted_content));
  });
});

function throughATrace(message: OmniMessage): CompleteMessage {
  const read = parseMessage(JSON.parse(toLine(message)));
  if (!("message" in read)) throw new Error(read.problems.join("; "));
  return read.message as CompleteMessage;
}
