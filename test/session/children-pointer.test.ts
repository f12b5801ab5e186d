// The pointer to a child and the child's first record belong together, whatever happens between them.

import { expect, test } from "vitest";
import { systemClock } from "../../src/clock.js";
import { PartialAggregator } from "../../src/protocol/aggregate.js";
import { withOrigin } from "../../src/protocol/builders.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { ok } from "../../src/result.js";
import { Children, type ChildSession } from "../../src/session/children.js";
import { metaOf } from "../support/messages.js";

function parent() {
  const shown: OmniMessage[] = [];
  const discarded: string[] = [];
  let runs = 0;
  const child: ChildSession = {
    id: "session-child",
    firstRecord: metaOf("session-child"),
    recordCount: 1,
    approvals: () => [],
    runFor: async () => {
      runs += 1;
      return ok(undefined);
    },
    stop: () => true,
    modeInherited: () => {},
  };
  const children = new Children({
    clock: systemClock(),
    journal: { commit: (batch) => void shown.push(...batch), fragments: new PartialAggregator() },
    approvalMode: () => "always-ask",
    announce: () => {},
    onPending: () => {},
    onEnded: () => {},
    spawn: async () => ok(child),
    discard: async (id) => void discarded.push(id),
  });
  const stop = new AbortController();
  const run = (pointTo: () => Promise<void>) =>
    children.run(
      { prompt: "help", description: "help" },
      { signal: stop.signal, clock: systemClock(), toolCallId: "a", maxOutputChars: 100, pointTo },
    );
  return { children, shown, discarded, stop, run, runs: () => runs };
}

test("an interrupt while the pointer is being recorded: the child is shown, and does nothing", async () => {
  const { children, shown, discarded, stop, run, runs } = parent();
  const output = await run(async () => stop.abort());
  expect(output).toMatchObject({ stop: "aborted" });
  expect(shown).toEqual([withOrigin(metaOf("session-child"), "session-child")]);
  expect([discarded, runs(), children.atWork]).toEqual([[], 0, 0]);
});

test("a pointer that cannot be recorded leaves no child", async () => {
  const { shown, discarded, run } = parent();
  await expect(run(() => Promise.reject(new Error("ENOSPC")))).rejects.toThrow("ENOSPC");
  expect([shown, discarded]).toEqual([[], ["session-child"]]);
});
