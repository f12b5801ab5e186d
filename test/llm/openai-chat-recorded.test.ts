// Recorded streams of real providers, when the folder with them is there.

import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { httpFailure, statusOf } from "../../src/llm/outcome.js";
import { isPayload } from "../../src/protocol/guards.js";
import { complete, decodeChunks, decodeText, essence, fromOf, pieces, segmentsOf } from "./support.js";

const FROM = fromOf("openai-chat");

const folder = path.resolve(process.env.OMNID_FIXTURES ?? "../shared/fixtures", "providers");
const isThere = existsSync(path.join(folder, "INDEX.json"));
if (!isThere) console.warn(`recorded provider streams are skipped: no ${folder}/INDEX.json`);

interface Recorded {
  id: string;
  protocol: string;
  file: string;
  http: { status: number; headers?: Record<string, string> };
  expect: {
    status: string;
    status_acceptable: string[];
    finish_reason?: string | null;
    text?: string;
    thinking?: string;
    segments?: Record<string, string>[];
    usage?: Record<string, number> | null;
    fidelity?: { kind: string; value: unknown }[];
    error?: { message: string };
    refusal?: string;
  };
}

const files: Recorded[] = isThere ? JSON.parse(readFileSync(path.join(folder, "INDEX.json"), "utf8")).files : [];
const read = (file: Recorded): Buffer => readFileSync(path.join(folder, file.file));
const streams = files.filter((file) => file.protocol === "openai-chat" && file.id.startsWith("openai-chat/"));
const errors = files.filter((file) => file.id.startsWith("http-errors/"));

describe.skipIf(!isThere)("recorded openai-chat streams", () => {
  test.each(streams)("$id is read as its index says", (file) => {
    const { messages, outcome } = decodeChunks([read(file)]);
    const { expect: right } = file;
    expect(right.status_acceptable).toContain(outcome.status);
    // A refusal in place of an answer is a filter of the provider's; its text is the error's.
    if (right.refusal !== undefined) {
      expect(outcome).toMatchObject({ status: "failed", error: { kind: "content_filter", message: right.refusal } });
    } else expect(outcome.status).toBe(right.status);
    expect(outcome.finishReason ?? null).toBe(right.finish_reason);
    expect(segmentsOf(messages)).toEqual(right.segments);
    const { cache_read = 0, cache_write = 0, output = 0, total = 0 } = right.usage ?? {};
    expect(outcome.usage).toMatchObject({ cache_read, cache_write, output, total });
    if (right.error !== undefined) expect(outcome.error?.message).toContain(right.error.message);
    const thought = complete(messages).find((message) => isPayload(message, "thinking"));
    for (const { kind, value } of right.fidelity ?? []) {
      expect(thought?.payload).toMatchObject({ fidelity: { [kind]: value, from: FROM } });
    }
    for (const message of complete(messages)) {
      expect((message.payload as { stop_reason?: string }).stop_reason).toBe(
        outcome.status === "completed" ? undefined : outcome.status,
      );
    }
  });

  test.each(streams)("B3: $id reads the same cut at every byte, and a byte at a time", (file) => {
    const bytes = read(file);
    const whole = essence(decodeChunks([bytes]));
    expect(essence(decodeChunks(pieces(bytes, 1)))).toEqual(whole);
    // Seven shifts of seven-byte pieces: a cut at each offset, once.
    for (let shift = 0; shift < 7; shift++) {
      const chunks = [bytes.subarray(0, shift), ...pieces(bytes.subarray(shift), 7)];
      expect(essence(decodeChunks(chunks))).toEqual(whole);
    }
  });

  test.each(streams)("F15: $id cut after any event is never complete before its end mark", (file) => {
    const text = read(file).toString("utf8");
    const frames = text.split(/(?<=\n\n)/);
    for (let count = 0; count < frames.length; count++) {
      const part = frames.slice(0, count).join("");
      const { messages, outcome } = decodeText(part);
      const hasEnd = /"finish_reason": ?"|data: \[DONE\]/.test(part);
      if (!hasEnd) expect(outcome.status).not.toBe("completed");
      for (const message of complete(messages)) {
        if (!isPayload(message, "tool_call") || message.payload.stop_reason !== undefined) continue;
        const args = message.payload.arguments.trim();
        if (args === "") expect(hasEnd).toBe(true);
        else expect(typeof JSON.parse(args)).toBe("object");
      }
    }
  });
});

describe.skipIf(!isThere)("recorded error bodies", () => {
  test.each(errors)("$id has the status that its index says", (file) => {
    const body = read(file).toString("utf8");
    const { status, headers = {} } = file.http;
    if (status === 200) {
      const { outcome } = decodeText(body);
      expect(outcome.status).toBe(file.expect.status);
      expect(outcome.error?.message).toBe("model not loaded");
      return;
    }
    const { error } = httpFailure({ status, headers, body }, 0);
    expect(error.kind === "auth" ? "auth" : statusOf(error.kind)).toBe(file.expect.status);
    if (/context|too-long/.test(file.id)) expect(error.kind).toBe("context_overflow");
    expect(error.http_status).toBe(status);
    expect(error.message).not.toMatch(/<\/?[a-z]/);
  });
});
