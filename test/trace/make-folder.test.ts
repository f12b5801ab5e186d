import { chmodSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { makeFolder } from "../../src/trace/make-folder.js";

const scratch = (): string => {
  const dir = mkdtempSync(join(tmpdir(), "omnid-test-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
};

test("folders are made as deep as asked, for their owner alone whatever the umask, many at once too", async () => {
  const old = process.umask(0o022);
  onTestFinished(() => void process.umask(old));
  const path = join(scratch(), "a", "b", "c");
  await Promise.all([makeFolder(path), makeFolder(path), makeFolder(join(path, "d"))]);
  expect(statSync(path).mode & 0o777).toBe(0o700);
  expect(existsSync(join(path, "d"))).toBe(true);
});

test("a folder that is there keeps its mode", async () => {
  const dir = scratch();
  chmodSync(dir, 0o755);
  await makeFolder(dir);
  expect(statSync(dir).mode & 0o777).toBe(0o755);
});

test("a file in the way is an error that says so", async () => {
  const file = join(scratch(), "file");
  writeFileSync(file, "");
  await expect(makeFolder(file)).rejects.toMatchObject({ code: "ENOTDIR" });
  await expect(makeFolder(join(file, "below"))).rejects.toMatchObject({ code: "ENOTDIR" });
});

test.skipIf(!existsSync("/proc/self"))("a place where nothing can be made is an error, not a wait", async () => {
  await expect(makeFolder("/proc/nope/below")).rejects.toMatchObject({ code: expect.stringMatching(/^E/) });
});
