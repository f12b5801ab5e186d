// What happens to commands when the process that runs them dies with no time to clean up. Our code is bundled and run
// by a process of its own, which the test then kills.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { expect, onTestFinished, test, vi } from "vitest";
import { folderWithHost } from "./own-process.js";
import { livingInGroup } from "./support.js";

const HOST = `
const cmd = "(trap '' TERM; sleep 1000) & sleep 1000 & echo $$; trap '' TERM; while :; do sleep 1000; done";
for await (const batch of execute(cmd))
  for (const { payload } of batch) if (payload.event_type === "delta") process.stdout.write(payload.output);
`;

async function startHost(): Promise<{ host: ChildProcess; group: number }> {
  const folder = await folderWithHost(HOST);
  const host = spawn(process.execPath, ["host.mjs"], { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void host.kill("SIGKILL"));
  const [line] = (await once(host.stdout as NodeJS.EventEmitter, "data")) as [Buffer];
  return { host, group: Number(line.toString().trim()) };
}

test.each(["SIGKILL", "SIGTERM"] as const)(
  "H9: when the server dies of %s, its commands and their background children die with it",
  async (signal) => {
    const { host, group } = await startHost();
    expect(group).toBeGreaterThan(1);
    expect((await livingInGroup(group)).length).toBeGreaterThanOrEqual(4);
    host.kill(signal);
    await once(host, "exit");
    await vi.waitFor(async () => expect(await livingInGroup(group)).toEqual([]), { timeout: 20_000, interval: 50 });
  },
);
