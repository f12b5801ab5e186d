import { expect, test } from "vitest";
import { Steps } from "../../src/client/steps.js";

/** Lets everything run that is due. */
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test("an offer waits until every reader is done with it", async () => {
  const steps = new Steps<number>();
  const [one, two] = [steps.read(), steps.read()];
  let isTaken = false;
  const offer = steps.offer(1).then(() => {
    isTaken = true;
  });
  expect(await one.next()).toEqual({ done: false, value: 1 });
  await turn();
  expect(isTaken).toBe(false);
  expect(await two.next()).toEqual({ done: false, value: 1 });
  void one.next();
  await turn();
  expect(isTaken).toBe(false);
  void two.next();
  await offer;
});

test("without readers an offer is taken at once, and a reader that returned is none", async () => {
  const steps = new Steps<number>();
  await steps.offer(1);
  const reader = steps.read();
  const offer = steps.offer(2);
  await reader.return?.();
  await offer;
  expect(steps.isRead).toBe(false);
  expect(await reader.next()).toEqual({ done: true, value: undefined });
});

test("the end reaches those who wait and those who come later", async () => {
  const steps = new Steps<number>();
  const next = steps.read().next();
  steps.end();
  expect(await next).toEqual({ done: true, value: undefined });
  expect(await steps.read().next()).toEqual({ done: true, value: undefined });
});
