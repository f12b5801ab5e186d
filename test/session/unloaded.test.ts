// A Session that left memory and came back is the one that it was.

import { expect, test } from "vitest";
import { type Script, scriptedModel } from "../support/engine.js";
import { ended, hostOn, listReader, made, tempDir } from "../support/sessions.js";
import { gate } from "../support/upstream.js";

/** A host with room for one Session, so that making another one unloads it. */
async function cramped(scripts: Script[]) {
  const dataDir = tempDir();
  const model = scriptedModel(scripts);
  const host = await hostOn({ model, dataDir, process: { maxSessions: 1 } });
  const session = await made(host.create({ approvalMode: "allow-all" }, null));
  const comesBack = async () => {
    await expect.poll(() => session.isIdle).toBe(true);
    await made(host.create({}, null));
    return host.use(session.id, null, async (again) => {
      if (again === undefined || again === session) throw new Error("it was not unloaded");
      return again;
    });
  };
  return { dataDir, model, host, session, comesBack };
}

test("a Task that ended is still ended, for who asks, for who follows it, and after a restart", async () => {
  const { session, comesBack, model, dataDir } = await cramped([{ steps: [{ say: "1" }] }, { steps: [{ say: "2" }] }]);
  const { taskId } = await made(session.submit("a", { hasKey: true }));
  await session.settled();
  const view = session.task(taskId);
  expect(view).toMatchObject({ state: "ended", status: "completed" });
  const again = await comesBack();
  expect(again.task(taskId)).toEqual(view);
  const ends = gate();
  const late = listReader();
  again.follow({ ...late, end: () => ends.open() }, { untilTask: taskId });
  await ends.opened;
  await made(again.patch({ title: "written again" }));
  const other = await hostOn({ model, dataDir });
  await other.use(session.id, null, (restarted) => expect(restarted?.task(taskId)).toEqual(view));
  await made(again.submit("b", {}));
  await again.settled();
  expect(again.task(taskId)).toEqual(view);
});

test("steering that was taken back, of which no stream tells, does not wait again", async () => {
  const rest = gate();
  const fails: Script = {
    steps: [{ wait: rest.opened }],
    outcome: { status: "failed", error: { kind: "auth", message: "no" } },
  };
  const { session, comesBack } = await cramped([fails]);
  const reader = listReader();
  session.follow(reader, {});
  await made(session.submit("a", {}));
  const { steerId } = await made(session.steer("look left"));
  rest.open();
  await reader.until(ended);
  reader.leave();
  expect(session.queue()).toMatchObject([{ itemId: steerId }]);
  await made(session.recall(steerId));
  expect((await comesBack()).queue()).toEqual([]);
});
