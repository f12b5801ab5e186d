import { expect, test } from "vitest";
import type { LLMClient, LLMOutcome } from "../../src/engine/ports.js";
import { countedClient, type RequestStat } from "../../src/llm/counted-client.js";
import { emptyTokenCounts } from "../../src/protocol/builders.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { manualClock } from "../support/manual-clock.js";
import { llmRequest } from "./support.js";

const BATCH = [{ timestamp: "", type: "model_msg", payload: { type: "text", role: "assistant", text: "x" } }] as never;
const usage = { ...emptyTokenCounts(), output: 3 };

/** A model that takes 200 ms for each of its reads. */
function counted(reads: number, outcome: LLMOutcome) {
  const clock = manualClock();
  const stats: RequestStat[] = [];
  const inner: LLMClient = {
    async *stream() {
      for (let n = 0; n < reads; n += 1) {
        clock.advance(200);
        yield BATCH;
      }
      clock.advance(200);
      return outcome;
    },
  };
  return { client: countedClient(inner, { clock, onRequest: (stat) => stats.push(stat) }), stats };
}

test("messages and outcome come through as they are; the times are those of the first read and of the end", async () => {
  const outcome: LLMOutcome = { status: "completed", usage, finishReason: "stop" };
  const { client, stats } = counted(2, outcome);
  const stream = client.stream(llmRequest());
  const batches: (readonly OmniMessage[])[] = [];
  let read = await stream.next();
  for (; read.done !== true; read = await stream.next()) batches.push(read.value);
  expect(batches).toEqual([BATCH, BATCH]);
  expect(read.value).toBe(outcome);
  await stream.return(outcome);
  expect(stats).toEqual([{ outcome: "completed", usage, firstMs: 200, totalMs: 600 }]);
});

test("a Request that failed counts under the kind of its error, and one without an answer has no first time", async () => {
  const { client, stats } = counted(0, {
    status: "failed",
    usage,
    error: { kind: "rate_limit", message: "slow down" },
  });
  await client.stream(llmRequest()).next();
  expect(stats).toEqual([{ outcome: "rate_limit", usage, firstMs: undefined, totalMs: 200 }]);
});

test("one that is given up counts once as aborted, whatever it says afterwards", async () => {
  const { client, stats } = counted(5, { status: "completed", usage });
  const abort = new AbortController();
  const stream = client.stream(llmRequest({ signal: abort.signal }));
  await stream.next();
  abort.abort();
  await stream.return({ status: "aborted", usage: emptyTokenCounts() });
  await stream.next();
  expect(stats).toEqual([{ outcome: "aborted", usage: emptyTokenCounts(), firstMs: 200, totalMs: 200 }]);
});
