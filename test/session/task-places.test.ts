// Places for Tasks: who waits for one gets it in turn, and none is lost.

import { expect, test } from "vitest";
import { TaskPlaces } from "../../src/session/task-places.js";
import { textsOf } from "../support/compaction.js";
import { type Script, scriptedModel } from "../support/engine.js";
import { hostOn, made, tempDir } from "../support/sessions.js";

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Runs `left` Tasks, one after the other, each for one turn; as a Session does, it asks in the tick in which it ends. */
function runner(places: TaskPlaces, name: string, left: number, order: string[]) {
  const pump = () => {
    if (left === 0) return;
    const claim = places.claim({ whenFree: pump });
    if (!claim.ok) return;
    left -= 1;
    order.push(name);
    void turn().then(() => {
      claim.value();
      pump();
    });
  };
  return pump;
}

test("whoever asks again in the tick in which it gives its place back stands behind those who wait", async () => {
  const places = new TaskPlaces(1);
  const order: string[] = [];
  for (const name of ["a", "b", "c"]) runner(places, name, 3, order)();
  while (places.taken > 0) await turn();
  expect(order.join("")).toBe("abcabcabc");
});

test("a place that nobody wants any more goes on to the next, and at last is free", async () => {
  const places = new TaskPlaces(1);
  const first = places.claim();
  let given: (() => void) | undefined;
  const wants = () => {
    const claim = places.claim({ whenFree: wants });
    if (claim.ok) given = claim.value;
  };
  for (let count = 0; count < 3; count++) places.claim({ whenFree: () => {} });
  wants();
  if (!first.ok) throw new Error("the first place is there");
  first.value();
  first.value();
  // On its way it belongs to those who wait.
  expect(places.claim()).toMatchObject({ ok: false, code: "too_many_tasks" });
  await turn();
  expect(given).toBeDefined();
  given?.();
  await turn();
  expect(places.taken).toBe(0);
});

test("with more at work than there are places nobody gets one before enough have ended", async () => {
  const places = new TaskPlaces(1);
  const forced = [places.claim({ force: true }), places.claim({ force: true })];
  const order: string[] = [];
  runner(places, "a", 1, order)();
  forced[0]?.value();
  await turn();
  expect(order).toEqual([]);
  forced[1]?.value();
  await turn();
  expect(order).toEqual(["a"]);
});

test("after the end nobody gets a place that was on its way", async () => {
  const places = new TaskPlaces(1);
  const first = places.claim();
  const order: string[] = [];
  runner(places, "a", 1, order)();
  if (first.ok) first.value();
  places.close();
  await turn();
  expect(order).toEqual([]);
  expect(places.taken).toBe(0);
});

test("with one place the Tasks of two Sessions take turns", async () => {
  const dataDir = tempDir();
  const stuck: Script = { steps: [{ wait: new Promise<void>(() => {}) }] };
  const before = await hostOn({ model: scriptedModel([stuck, stuck]), dataDir });
  const taskIds: [string, string][] = [];
  for (const name of ["a", "b"]) {
    const session = await made(before.create({}, null));
    await made(session.submit("stuck", {}));
    for (const number of [1, 2, 3])
      taskIds.push([session.id, (await made(session.submit(`${name}${number}`, { whenBusy: "queue" }))).taskId]);
  }
  // The process ends here; the next one has a single place.
  const model = scriptedModel(taskIds.map(() => ({ steps: [{ say: "Done." }] })));
  const after = await hostOn({ model, dataDir, process: { maxTasks: 1 } });
  const areOver = async () => {
    for (const [id, taskId] of taskIds) {
      const view = await after.use(id, null, (session) => session?.task(taskId));
      if (view?.state !== "ended") return false;
    }
    return true;
  };
  await expect.poll(areOver).toBe(true);
  const order = model.requests.map(({ messages }) => textsOf(messages).at(-1));
  expect(order).toHaveLength(6);
  const [first, second] = order[0]?.startsWith("a") ? ["a", "b"] : ["b", "a"];
  expect(order).toEqual([1, 2, 3].flatMap((number) => [`${first}${number}`, `${second}${number}`]));
});
