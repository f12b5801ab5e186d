// Runs the benchmarks: `node bench/run.mjs [name ...] [--quick]`. Each file `bench/<name>.ts` is one figure, a program of
// its own that prints a Markdown section and exits with 1 when a bar does not hold. What was run without flags takes its
// place in bench/RESULTS.md. The files are compiled first (a benchmark must not time a transpiler).

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { keepResults } from "./support/results.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
// Two runs at once must not empty each other's folder. Under node_modules, so that imports resolve.
const outDir = join(here, `../node_modules/.cache/omnid-bench/${process.pid}`);
/** What an interrupted benchmark may take to end in order, its servers and its build with it. */
const GRACE_MS = 5_000;
const EXIT_USAGE = 64;

const args = process.argv.slice(2);
const flags = args.filter((arg) => arg.startsWith("-"));
const wanted = args.filter((arg) => !arg.startsWith("-")).map((arg) => basename(arg, ".ts"));
const known = readdirSync(here)
  .filter((file) => file.endsWith(".ts"))
  .map((file) => basename(file, ".ts"));
const names = wanted.length > 0 ? wanted : known;

const usage = `Usage: node bench/run.mjs [name ...] [--quick] [--readers=<n,...>]

Without names all are run: ${known.join(", ")}
  --quick          fewer rounds: only whether the bars hold
  --readers=<n,.>  of fan-out only the cases with so many readers
Results of a run without flags are kept in bench/RESULTS.md.
`;
if (flags.includes("--help") || flags.includes("-h")) {
  process.stdout.write(usage);
  process.exit();
}
const strange = [
  ...flags.filter((flag) => !/^--(quick|readers=\d+(,\d+)*)$/.test(flag)),
  ...names.filter((name) => !known.includes(name)),
];
if (strange.length > 0) {
  process.stderr.write(`There is no ${strange.join(", ")}.\n\n${usage}`);
  process.exit(EXIT_USAGE);
}

/** The signal that ends the run. */
let interruptedBy;
let current;
const interruption = new Promise((resolve) => {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => {
      // Who asks twice does not wait.
      signalAll(current, interruptedBy === undefined ? "SIGTERM" : "SIGKILL");
      interruptedBy = signal;
      resolve();
    });
  }
});
// Also of a benchmark that was cut off nothing stays behind.
const scratch = mkdtempSync(join(tmpdir(), "omnid-bench-"));

const sections = [];
let failed = false;
try {
  await compile();
  for (const name of names) {
    if (interruptedBy !== undefined) break;
    const { code, output } = await run(name);
    sections.push(output.trim());
    failed ||= code !== 0;
  }
} finally {
  for (const folder of [outDir, scratch]) rmSync(folder, { recursive: true, force: true });
}

if (interruptedBy !== undefined) process.exit(128 + constants.signals[interruptedBy]);
// A run that is quick or of chosen cases is for whoever waits for it.
if (flags.length === 0) keepResults(join(here, "RESULTS.md"), sections);
process.exitCode = failed ? 1 : 0;

function compile() {
  return build({
    configFile: false,
    logLevel: "error",
    build: {
      ssr: true,
      outDir,
      emptyOutDir: true,
      target: "node20",
      minify: false,
      rollupOptions: {
        input: Object.fromEntries(names.map((name) => [name, join(here, `${name}.ts`)])),
        output: { entryFileNames: "[name].mjs", chunkFileNames: "[name]-[hash].mjs" },
      },
    },
  });
}

async function run(name) {
  // A process group of its own: servers, readers and the build end with it, whoever started them.
  const child = spawn(process.execPath, [join(outDir, `${name}.mjs`), ...flags], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, TMPDIR: scratch },
    detached: true,
  });
  current = child;
  let output = "";
  child.stdout.setEncoding("utf8");
  child.stdout.on("data", (text) => {
    output += text;
    process.stdout.write(text);
  });
  const exited = once(child, "exit");
  const closed = once(child, "close");
  await Promise.race([exited, interruption]);
  if (interruptedBy !== undefined) await untilGone(child);
  // What it has left behind, or what does not end.
  signalAll(child, "SIGKILL");
  const [code] = await closed;
  return { code, output };
}

/** Resolves when nothing is left of a benchmark, or its grace is over. */
async function untilGone(child) {
  for (let waitedMs = 0; waitedMs < GRACE_MS && signalAll(child, 0); waitedMs += 50) await sleep(50);
}

/** @returns false when there is nothing left of it. */
function signalAll(child, signal) {
  try {
    return child !== undefined && process.kill(-child.pid, signal);
  } catch {
    return false;
  }
}
