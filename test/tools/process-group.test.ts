// What comes out of a command after its end, from a pipe that the test holds and at a time that it owns.

import { spawn } from "node:child_process";
import { PassThrough } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { ProcessGroup } from "../../src/tools/process-group.js";
import { HandClock } from "./support.js";

async function overWithOpenPipe() {
  const clock = new HandClock();
  const reader = new PassThrough();
  const child = spawn("true", { detached: true, stdio: ["ignore", "ignore", "ignore", "pipe"] });
  const group = new ProcessGroup(child, reader, clock);
  onTestFinished(() => group.dispose());
  expect(await group.ended).toEqual({ kind: "exited", exitCode: 0 });
  return { clock, reader, group, output: group.output() };
}

test("an escaped process that goes on writing is listened to for one second", async () => {
  const { clock, reader, output } = await overWithOpenPipe();
  let reads = 0;
  for (;;) {
    const next = output.next();
    clock.advance(100);
    reader.write("x");
    if ((await next).done) break;
    reads += 1;
    expect(reads).toBeLessThan(10);
  }
  expect(reads).toBe(9);
  expect(clock.waiting).toBe(0);
});

test("a reader that takes its time loses nothing of it", async () => {
  const { clock, reader, output } = await overWithOpenPipe();
  for (const text of ["a", "b", "c"]) {
    reader.write(text);
    expect(String((await output.next()).value)).toBe(text);
    clock.advance(60_000);
  }
});

test("when it is told to end after the command did, it ends at once", async () => {
  const { clock, group, output } = await overWithOpenPipe();
  const next = output.next();
  expect(clock.waiting).toBe(1);
  group.terminate();
  expect(await next).toEqual({ done: true, value: undefined });
  expect(clock.waiting).toBe(0);
});
