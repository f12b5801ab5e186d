// bench/RESULTS.md: a section for each benchmark. A run puts its own sections in the place of the old ones and leaves
// all others as they are, whoever wrote them; so each says itself when it was measured and on what.

import { readFileSync, writeFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";

const HEAD = "# Results\n\nWritten by `npm run bench`. Each section says when it was measured and on what.";

/** @param outputs what each benchmark printed: its heading, then the rest */
export function keepResults(path, outputs) {
  const sections = sectionsOf(read(path));
  const measured = `Measured on ${new Date().toISOString().slice(0, 10)}, ${machine()}.`;
  for (const output of outputs) {
    const [heading, ...rest] = output.trim().split("\n");
    sections.set(heading, [heading, "", measured, ...rest].join("\n").trim());
  }
  writeFileSync(path, `${[HEAD, ...sections.values()].join("\n\n")}\n`);
}

/** By heading, in the order of the file. */
function sectionsOf(text) {
  const sections = text.split(/^(?=## )/m).filter((part) => part.startsWith("## "));
  return new Map(sections.map((part) => [part.split("\n", 1)[0], part.trim()]));
}

function read(path) {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error.code === "ENOENT") return "";
    throw error;
  }
}

function machine() {
  const model = cpus()[0]?.model.trim() || cpuModel() || process.arch;
  return `Node ${process.version}, ${cpus().length} × ${model}, ${Math.round(totalmem() / 2 ** 30)} GB, ${process.platform} ${release()}`;
}

function cpuModel() {
  try {
    return /^model name\s*: (.*)$/m.exec(readFileSync("/proc/cpuinfo", "utf8"))?.[1];
  } catch {
    // Only Linux has this file, and the name is a nicety.
    return undefined;
  }
}
