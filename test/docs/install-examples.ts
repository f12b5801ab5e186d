// The examples as a user has them: beside a node_modules with what they ask for, `omnid` as it was built.

import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { inject } from "vitest";
import { type AtEnd, temporaryFolder } from "../support/server.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const EXAMPLES = join(ROOT, "docs", "examples");

/** @returns the folder that they are in, which is gone when the test is. */
export function installExamples(atEnd?: AtEnd): string {
  const folder = temporaryFolder(atEnd);
  const modules = join(folder, "node_modules");
  cpSync(EXAMPLES, folder, { recursive: true });
  mkdirSync(join(modules, "omnid"), { recursive: true });
  symlinkSync(join(ROOT, "node_modules", "eventsource-parser"), join(modules, "eventsource-parser"));
  symlinkSync(dirname(dirname(inject("cli"))), join(modules, "omnid", "dist"));
  writeFileSync(join(modules, "omnid", "package.json"), readFileSync(join(ROOT, "package.json")));
  return folder;
}
