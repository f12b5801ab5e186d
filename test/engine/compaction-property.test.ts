// Compaction at any place of any history, twice in a row, and what then goes out to each of the four protocols.

import fc from "fast-check";
import { expect, test } from "vitest";
import type { LLMRequest } from "../../src/engine/ports.js";
import { encodeAnthropic } from "../../src/llm/wire/anthropic-messages-encode.js";
import { encodeGemini } from "../../src/llm/wire/gemini-encode.js";
import { encodeChat } from "../../src/llm/wire/openai-chat-encode.js";
import { encodeResponses } from "../../src/llm/wire/openai-responses-encode.js";
import { imageUrl, userText } from "../../src/protocol/builders.js";
import { isPayload } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import type { CompactionReason } from "../../src/protocol/payloads.js";
import { expectPaired } from "../e2e/api.js";
import { type Body, brokenRules } from "../llm/anthropic-rules.js";
import { violations } from "../llm/gemini-rules.js";
import { expectRules, type Item } from "../llm/openai-responses-rules.js";
import { llmRequest, modelSpec } from "../llm/support.js";
import { compactor, expectLawfulRecords, folded, Story } from "../support/compaction.js";
import { type Script, scriptedModel } from "../support/engine.js";
import { AT } from "../support/messages.js";

const good: Script = { steps: [{ say: "All of it." }] };
const PNG = "data:image/png;base64,AAAA";

/** Holds a Request to the rules of each protocol. */
function expectSendable(messages: LLMRequest["messages"]): void {
  const request = llmRequest({ messages });
  const chat = JSON.parse(encodeChat(request, modelSpec()).body);
  expectPaired(chat.messages);
  const anthropic = encodeAnthropic(request, modelSpec({ modelId: "claude-sonnet-4-5", thinking: false })).body;
  expect(brokenRules(JSON.parse(anthropic) as Body, anthropic)).toEqual([]);
  const gemini = encodeGemini(request, modelSpec({ modelId: "gemini-2.5-flash" })).body;
  expect(violations(gemini, { wantsSignatures: false, ownSignatures: new Set() })).toEqual([]);
  const responses = JSON.parse(encodeResponses(request, modelSpec()).body) as { input: Item[] };
  expectRules(responses.input);
}

type Part = { prompt: number; calls: number[]; steered: boolean; picture: boolean };

/** A history as steps, each of them a place where a Request could go out. */
function stepsOf(parts: readonly Part[]): OmniMessage[][] {
  const steps: OmniMessage[][] = [];
  const story = new Story();
  let told = 1;
  const step = () => {
    steps.push(story.records.slice(told));
    told = story.records.length;
  };
  for (const { prompt, calls, steered, picture } of parts) {
    story.prompt(`prompt ${prompt}`, ...(picture ? [imageUrl(AT, PNG)] : []));
    step();
    for (const count of calls) {
      story.turn("", { calls: count });
      step();
      if (!steered) continue;
      story.prompt("steer");
      step();
    }
    story.turn("answer");
    step();
  }
  return steps;
}

const parts = fc.array(
  fc.record({
    prompt: fc.nat(99),
    calls: fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 3 }),
    steered: fc.boolean(),
    picture: fc.boolean(),
  }),
  { minLength: 1, maxLength: 3 },
);
const reasonOf = (n: number): CompactionReason => (["context", "turns", "manual"] as const)[n % 3] as CompactionReason;

/** Plays the steps and compacts behind some of them. @returns the Trace. */
async function play(
  steps: readonly OmniMessage[][],
  boundaries: ReadonlySet<number>,
  mode: "summarize" | "discard",
): Promise<OmniMessage[]> {
  let records: OmniMessage[] = new Story().records;
  let usage = 0;
  for (const [place, step] of steps.entries()) {
    const it = folded(records);
    // Usage goes on from what the compactions before have cost.
    it.append(step.map((record) => shifted(record, usage)));
    records = it.trace;
    if (!boundaries.has(place)) continue;
    const model = scriptedModel([good]);
    const compacting = compactor(records, { model, settings: { mode } });
    const before = compacting.context.toSummarize().messages;
    const result = await compacting.run(reasonOf(place));
    if (result === "completed" && mode === "summarize") {
      usage += 15;
      expect(model.requests[0]?.messages.slice(0, -1)).toEqual(before);
      expectSendable(model.requests[0]?.messages ?? []);
    }
    records = compacting.trace;
  }
  return records;
}

function shifted(record: OmniMessage, by: number): OmniMessage {
  if (!isPayload(record, "token_usage") || by === 0) return record;
  const { session } = record.payload;
  const moved = {
    ...session,
    cache_write: session.cache_write + (by * 10) / 15,
    output: session.output + (by * 5) / 15,
    total: session.total + by,
  };
  return { ...record, payload: { ...record.payload, session: moved } };
}

test("F4: a compaction behind every two steps of a history leaves what every protocol takes, and what a restart gives", async () => {
  await fc.assert(
    fc.asyncProperty(parts, fc.constantFrom("summarize", "discard"), fc.nat(), async (some, mode, seed) => {
      const steps = stepsOf(some);
      const first = seed % steps.length;
      for (let second = first; second < steps.length; second++) {
        const trace = await play(steps, new Set([first, second]), mode);
        expectLawfulRecords({ trace });
        const { context } = folded(trace);
        const again = folded(JSON.parse(JSON.stringify(trace)) as OmniMessage[]).context;
        expect(again.assemble()).toEqual(context.assemble());
        expectSendable([...context.assemble(), userText(AT, "next")]);
      }
    }),
    { numRuns: 40 },
  );
});

test("no user message is lost or comes twice: each is in the summary's Request or follows it", async () => {
  await fc.assert(
    fc.asyncProperty(parts, fc.nat(), async (some, seed) => {
      const steps = stepsOf(some);
      const place = seed % steps.length;
      const records = [...new Story().records, ...steps.slice(0, place + 1).flat()];
      const model = scriptedModel([good]);
      const it = compactor(records, { model });
      const before = it.context.assemble().filter(({ payload }) => payload.role === "user" && "text" in payload);
      if ((await it.run()) === "nothing") return;
      const summarised = (model.requests[0]?.messages ?? []).slice(0, -1);
      const copied = it.context.assemble().slice(1);
      const after = [...summarised, ...copied].filter(({ payload }) => payload.role === "user" && "text" in payload);
      expect(after).toEqual(before);
    }),
  );
});
