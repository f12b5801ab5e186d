// The built-in tools in a process of their own, which a test may kill or keep short of something.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "vite";
import { temporaryFolder } from "./support.js";

/** What `host` finds in scope: `execute(cmd)`, the batches of an exec_command. */
const TOOLS = `
import { builtInTools, createEnvironment, systemClock } from "./bundle.mjs";
const tools = builtInTools({ workspace: process.cwd(), allowOutsideWorkspace: false, environment: { PATH: process.env.PATH, HOME: process.cwd() } });
const environment = createEnvironment({ tools, clock: systemClock() });
const execute = (cmd) => {
  const payload = { type: "tool_call", role: "assistant", name: "exec_command", arguments: JSON.stringify({ cmd }), tool_call_id: "c" };
  const call = { timestamp: "2026-07-18T03:10:22.123Z", type: "model_msg", payload };
  return environment.execute({ call, signal: new AbortController().signal, onProgress() {} });
};
`;

/** @returns a new folder where `host.mjs` is `host`, with our code bundled beside it. */
export async function folderWithHost(host: string): Promise<string> {
  const folder = await temporaryFolder();
  await writeFile(
    join(folder, "entry.ts"),
    ["tools/built-in-tools.js", "tools/environment.js", "clock.js"]
      .map((file) => `export * from ${JSON.stringify(join(process.cwd(), "src", file))};\n`)
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
  await writeFile(join(folder, "host.mjs"), TOOLS + host);
  return folder;
}
