// A change of a Session counts when it is on record. What was refused changed nothing, whatever was written meanwhile.
// The same goes for what waits.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { isPayload } from "../../src/protocol/guards.js";
import type { Session } from "../../src/session/session.js";
import { diskFs } from "../../src/trace/trace-fs.js";
import { type Script, scriptedModel } from "../support/engine.js";
import { ended, hostOn, listReader, made, tempDir } from "../support/sessions.js";
import { gate } from "../support/upstream.js";

/** A disk on which the next record that is written waits for `go`, and is refused unless `works`. */
function heldRecord() {
  const go = gate();
  let held = false;
  let next: "plain" | "works" | "fails" = "plain";
  const rename = async (from: string, to: string) => {
    const how = next;
    if (how === "plain" || !to.endsWith("session.json")) return diskFs.rename(from, to);
    next = "plain";
    held = true;
    await go.opened;
    if (how === "fails") throw Object.assign(new Error("full"), { code: "ENOSPC" });
    return diskFs.rename(from, to);
  };
  return {
    fs: { ...diskFs, rename },
    go,
    isHeld: () => held,
    hold: (how: "works" | "fails") => {
      next = how;
    },
  };
}

const call: Script = { steps: [{ call: "exec_command", id: "call-1", args: JSON.stringify({ cmd: "echo ran" }) }] };
const isAsked = ({ data }: { data: Record<string, unknown> }) => data.type === "approval_request";

test("a wider mode lets nothing through before it is on record, and nothing at all when it cannot be", async () => {
  const { fs, go, hold } = heldRecord();
  const asks = gate();
  const model = scriptedModel([{ steps: [{ wait: asks.opened }, ...call.steps] }, { steps: [{ say: "done" }] }]);
  const host = await hostOn({ model, fs });
  const session = await made(host.create({}, null));
  const reader = listReader();
  session.follow(reader, {});
  await made(session.submit("go", {}));
  hold("fails");
  const patched = session.patch({ approvalMode: "allow-all" });
  expect(session.view().approvalMode).toBe("always-ask");
  asks.open();
  await reader.until(({ data }) => data.type === "event_msg" && JSON.stringify(data).includes("request_end"));
  go.open();
  expect(await patched).toMatchObject({ ok: false, code: "storage_failed" });
  await reader.until((event) => isAsked(event) || ended(event));
  expect(reader.messages.some((message) => isPayload(message, "approval_decision"))).toBe(false);
  expect(session.view()).toMatchObject({ approvalMode: "always-ask", pendingApprovals: 1 });
  await made(session.decide("call-1", { decision: "deny" }));
  await session.settled();
});

test("a narrower mode asks from the tick in which it comes", async () => {
  const { fs, go, hold } = heldRecord();
  const asks = gate();
  const model = scriptedModel([{ steps: [{ wait: asks.opened }, ...call.steps] }, { steps: [{ say: "done" }] }]);
  const host = await hostOn({ model, fs });
  const session = await made(host.create({ approvalMode: "allow-all" }, null));
  const reader = listReader();
  session.follow(reader, {});
  await made(session.submit("go", {}));
  hold("works");
  const changes = [session.patch({ approvalMode: "always-ask" }), session.patch({ approvalMode: "read-only" })];
  asks.open();
  await reader.until(({ data }) => data.type === "event_msg" && JSON.stringify(data).includes("request_end"));
  go.open();
  for (const change of changes) expect(await change).toMatchObject({ ok: true });
  await reader.until((event) => isAsked(event) || ended(event));
  expect(session.view()).toMatchObject({ approvalMode: "read-only", pendingApprovals: 1 });
  await made(session.decide("call-1", { decision: "deny" }));
  await session.settled();
});

test("of two changes to the same the second stands, though the first could not be written", async () => {
  const { fs, go, hold } = heldRecord();
  const dataDir = tempDir();
  const host = await hostOn({ model: scriptedModel([]), fs, dataDir });
  const session = await made(host.create({}, null));
  hold("fails");
  const first = session.patch({ title: "mine", thinkingLevel: "high" });
  const second = session.patch({ title: "mine" });
  go.open();
  expect(await first).toMatchObject({ ok: false, code: "storage_failed" });
  expect(await second).toMatchObject({ ok: true, value: { title: "mine", thinkingLevel: "default" } });
  await session.settled();
  const again = await (await hostOn({ model: scriptedModel([]), dataDir })).find(session.id, null);
  expect(again?.view()).toMatchObject({ title: "mine", thinkingLevel: "default" });
});

test("a change that was refused is not on the disk either, though another write was under way with it", async () => {
  const { fs, go, hold } = heldRecord();
  const dataDir = tempDir();
  const host = await hostOn({ model: scriptedModel([]), fs, dataDir });
  const session = await made(host.create({}, null));
  hold("fails");
  const patched = session.patch({ approvalMode: "allow-all", title: "mine" });
  const other = session.keepChildUsage();
  go.open();
  expect(await patched).toMatchObject({ ok: false, code: "storage_failed" });
  await other;
  await session.settled();
  const again = await (await hostOn({ model: scriptedModel([]), dataDir })).find(session.id, null);
  expect(again?.view()).toMatchObject({ approvalMode: "always-ask", title: null });
});

test.each([
  ["a Task that was refused waits nowhere", (session: Session) => session.submit("third", { whenBusy: "queue" })],
  ["one whose recall was refused waits", (session: Session, taskId: string) => session.recall(taskId)],
])("%s, on the disk neither, though another write was under way with it", async (_what, ask) => {
  const { fs, go, hold, isHeld } = heldRecord();
  const dataDir = tempDir();
  const never = new Promise<void>(() => {});
  const host = await hostOn({ model: scriptedModel([{ steps: [{ wait: never }] }]), fs, dataDir });
  const session = await made(host.create({}, null));
  await made(session.submit("first", {}));
  const { taskId } = await made(session.submit("second", { whenBusy: "queue" }));
  const waiting = () => {
    const { queue } = JSON.parse(readFileSync(join(dataDir, "sessions", session.id, "session.json"), "utf8"));
    return queue.map(({ itemId }: { itemId: string }) => itemId);
  };
  hold("fails");
  const refused = ask(session, taskId);
  await vi.waitFor(() => expect(isHeld()).toBe(true));
  const other = session.keepChildUsage();
  go.open();
  expect(await refused).toMatchObject({ ok: false, code: "storage_failed" });
  await other;
  await vi.waitFor(() => expect(waiting()).toEqual([taskId]));
  await session.abort({ clearQueue: true });
  await session.settled();
});
