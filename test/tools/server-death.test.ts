// What happens to commands when the process that runs them dies with no time to clean up. Our code is bundled and run
// by a process of its own, which the test then kills.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "vite";
import { expect, onTestFinished, test, vi } from "vitest";
import { livingInGroup, temporaryFolder } from "./support.js";

const HOST = `
import { builtInTools, createEnvironment, systemClock } from "./bundle.mjs";
const tools = builtInTools({ workspace: process.cwd(), allowOutsideWorkspace: false, environment: { PATH: process.env.PATH, HOME: process.cwd() } });
const environment = createEnvironment({ tools, clock: systemClock() });
const cmd = "(trap '' TERM; sleep 1000) & sleep 1000 & echo $$; trap '' TERM; while :; do sleep 1000; done";
const call = { timestamp: "2026-07-18T03:10:22.123Z", type: "model_msg", payload: { type: "tool_call", role: "assistant", name: "exec_command", arguments: JSON.stringify({ cmd }), tool_call_id: "c" } };
for await (const batch of environment.execute({ call, signal: new AbortController().signal, onProgress() {} }))
  for (const { payload } of batch) if (payload.event_type === "delta") process.stdout.write(payload.output);
`;

async function startHost(): Promise<{ host: ChildProcess; group: number }> {
  const folder = await temporaryFolder();
  await writeFile(
    join(folder, "entry.ts"),
    ["built-in-tools.js", "environment.js"]
      .map((file) => `export * from ${JSON.stringify(join(process.cwd(), "src/tools", file))};\n`)
      .concat(`export * from ${JSON.stringify(join(process.cwd(), "src/clock.js"))};\n`)
      .join(""),
  );
  await build({
    configFile: false,
    logLevel: "silent",
    ssr: { noExternal: true },
    build: {
      ssr: join(folder, "entry.ts"),
      outDir: folder,
      emptyOutDir: false,
      rollupOptions: { output: { entryFileNames: "bundle.mjs" } },
    },
  });
  await writeFile(join(folder, "host.mjs"), HOST);
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
