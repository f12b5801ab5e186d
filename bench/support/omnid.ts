// The built server as a process of its own, which is asked from outside what it took. What answers is loaded beside it and
// idle until it is asked.

import { type ChildProcess, fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { answer } from "./measuring.js";

// From node_modules/.cache/omnid-bench/<pid>/, where the compiled benchmark stands.
const ROOT = fileURLToPath(new URL("../../../..", import.meta.url));

/** Answers in the server's process. A hold is what the event loop was kept from a timer, as far as it was busy meanwhile. */
const PROBE = `
let watch, longest = 0, at = 0, cpu = 0;
const cpuNow = () => { const { user, system } = process.cpuUsage(); return user + system; };
process.on("message", ({ type }) => {
  if (type === "watch") {
    longest = 0; at = performance.now(); cpu = cpuNow();
    watch ??= setInterval(() => {
      const [now, used] = [performance.now(), cpuNow()];
      longest = Math.max(longest, Math.min(now - at, (used - cpu) / 1000));
      at = now; cpu = used;
    }, 1);
  } else if (type === "usage") {
    process.send({ type: "usage", cpuMicros: cpuNow(), rssBytes: process.memoryUsage.rss(), longestHoldMs: longest });
  } else if (type === "collect") {
    globalThis.gc();
    const { heapUsed, external } = process.memoryUsage();
    process.send({ type: "collected", heldBytes: heapUsed + external });
  }
});
process.channel.unref();
`;

export interface Usage {
  cpuMicros: number;
  rssBytes: number;
  longestHoldMs: number;
}

export interface Omnid {
  readonly url: string;
  readonly child: ChildProcess;
  /** What it has taken so far. */
  usage(): Promise<Usage>;
  /** Heap and what hangs on it after a collection. Only with the flag `--expose-gc`. */
  heldBytes(): Promise<number>;
  /** From now on the longest hold is counted anew. */
  watch(): void;
  /** Ends it, in order unless told otherwise. */
  end(signal?: "SIGKILL"): Promise<void>;
}

/** Builds what is run. */
export function buildOmnid(): void {
  const built = spawnSync("npm", ["run", "-s", "build"], { cwd: ROOT, stdio: ["ignore", "ignore", "inherit"] });
  if (built.status !== 0) throw new Error("the build failed");
}

/** Resolves when it says that it listens. */
export async function startOmnid(
  dataDir: string,
  env: Record<string, string> = {},
  flags: string[] = [],
): Promise<Omnid> {
  const child = fork(join(ROOT, "dist/src/cli.js"), [], {
    execArgv: ["--import", `data:text/javascript,${encodeURIComponent(PROBE)}`, ...flags],
    env: { PATH: process.env.PATH, PORT: "0", OMNID_DATA_DIR: dataDir, LOG_LEVEL: "error", ...env },
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  const url = await listening(child);
  const usage = () => {
    child.send({ type: "usage" });
    return answer<Usage>(child, "usage");
  };
  return {
    url,
    child,
    usage,
    heldBytes: async () => {
      child.send({ type: "collect" });
      return (await answer<{ heldBytes: number }>(child, "collected")).heldBytes;
    },
    watch: () => void child.send({ type: "watch" }),
    end: async (signal) => {
      const gone = once(child, "exit");
      child.kill(signal ?? "SIGTERM");
      await gone;
    },
  };
}

function listening(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    child.stdout?.on("data", (chunk) => {
      text += chunk;
      const url = /listening on (\S+)\n/.exec(text)?.[1];
      if (url !== undefined) resolve(url);
    });
    child.once("exit", (code) => reject(new Error(`the server ended with ${code} before it listened`)));
  });
}
