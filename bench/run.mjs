// Runs the benchmarks: `node bench/run.mjs [name ...] [--quick]`. Each file `bench/<name>.ts` is one figure, a program of
// its own that prints a Markdown section and exits with 1 when a bar does not hold. What was run without --quick takes its
// place in bench/RESULTS.md. The files are compiled first (a benchmark must not time a transpiler).

import { spawn } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { keepResults } from "./support/results.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
// Two runs at once must not empty each other's folder. Under node_modules, so that imports resolve.
const outDir = join(here, `../node_modules/.cache/omnid-bench/${process.pid}`);

const args = process.argv.slice(2);
const flags = args.filter((arg) => arg.startsWith("--"));
const wanted = args.filter((arg) => !arg.startsWith("--")).map((arg) => basename(arg, ".ts"));
const known = readdirSync(here)
  .filter((file) => file.endsWith(".ts"))
  .map((file) => basename(file, ".ts"));
const names = wanted.length > 0 ? wanted : known;
for (const name of names)
  if (!known.includes(name)) throw new Error(`no benchmark ${name}; there are: ${known.join(", ")}`);

await build({
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

const sections = [];
let failed = false;
for (const name of names) {
  const { code, output } = await run(name);
  sections.push(output.trim());
  failed ||= code !== 0;
}

rmSync(outDir, { recursive: true, force: true });

// A run that is quick or of chosen cases is for whoever waits for it.
if (flags.length === 0) keepResults(join(here, "RESULTS.md"), sections);
process.exitCode = failed ? 1 : 0;

function run(name) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [join(outDir, `${name}.mjs`), ...flags], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    // A benchmark that was interrupted must not go on without us: its servers end with it.
    for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => child.kill());
    let output = "";
    child.stdout.setEncoding("utf8");
    child.stdout.on("data", (text) => {
      output += text;
      process.stdout.write(text);
    });
    child.on("close", (code) => resolve({ code, output }));
  });
}
