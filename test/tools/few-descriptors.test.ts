// Commands in a process that may open no more files. The limit is that of a process of its own, and it is used up by the
// process itself, so what is left does not hang on how busy the machine is.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { folderWithHost } from "./own-process.js";

const MOST_FREE = 12;

const HOST = `
import { closeSync, openSync } from "node:fs";
const resultOf = async (cmd) => {
  let result;
  for await (const batch of execute(cmd))
    for (const { payload } of batch) if (payload.type === "tool_call_output") result = payload;
  return result;
};
await resultOf("true");
const held = [];
const results = [];
for (let free = 0; free <= ${MOST_FREE}; free++) {
  try {
    for (;;) held.push(openSync("/dev/null"));
  } catch {}
  for (const fd of held.splice(0, free)) closeSync(fd);
  results.push(await resultOf("echo here"));
}
for (const fd of held) closeSync(fd);
results.push(await resultOf("echo here"));
process.stdout.write(JSON.stringify(results));
`;

test("a command that gets no descriptor fails, whichever is the one that is missing, and the process goes on", async () => {
  const cwd = await folderWithHost(HOST);
  const limited = ["-c", 'ulimit -n 80; exec "$0" host.mjs', process.execPath];
  const { stdout } = await promisify(execFile)("bash", limited, { cwd });
  const results = JSON.parse(stdout) as { output: string; stop_reason?: string }[];
  expect(results).toHaveLength(MOST_FREE + 2);
  const failed = results.filter(({ stop_reason }) => stop_reason === "failed");
  expect(failed.length).toBeGreaterThan(1);
  expect(failed.map(({ output }) => output)).toContain("[the command did not start: spawn sh EMFILE]");
  for (const { output } of results.filter((result) => !failed.includes(result))) expect(output).toBe("here\n");
  expect(results.at(-1)).not.toHaveProperty("stop_reason");
});
