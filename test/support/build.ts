// The product as it ships, compiled once for a test run: servers under test run from it as processes of their own.
// What is built is named after the sources' state, so an unchanged tree costs nothing and two runs never share a folder
// that one of them is still writing.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
// Inside the project, so that the built files find the packages.
const CACHE = join(ROOT, "node_modules", ".cache", "omnid-builds");
const KEPT = 4;

declare module "vitest" {
  interface ProvidedContext {
    /** Path of the built `cli.js`. */
    cli: string;
  }
}

/** Vitest's global set-up. */
export function setup(project: TestProject): void {
  project.provide("cli", join(built(), "src", "cli.js"));
}

function built(): string {
  const folder = join(
    CACHE,
    stateOf(["src", "routes", "tsconfig.json", "tsconfig.build.json", "vite.config.ts", "package.json"]),
  );
  if (existsSync(folder)) return folder;
  const unfinished = `${folder}.${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  // Types are another check's business; here only the code counts.
  const options = ["--noCheck", "--declaration", "false", "--sourceMap", "false", "--outDir", unfinished];
  const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
  execFileSync(process.execPath, [tsc, "-p", "tsconfig.build.json", ...options], { cwd: ROOT, stdio: "inherit" });
  const vite = join(ROOT, "node_modules", "vite", "bin", "vite.js");
  execFileSync(process.execPath, [vite, "build", "--outDir", join(unfinished, "web")], { cwd: ROOT, stdio: "inherit" });
  try {
    renameSync(unfinished, folder);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    // Another run was faster with the same sources.
    if (!existsSync(folder)) throw error;
  }
  dropOld();
  return folder;
}

function stateOf(paths: readonly string[]): string {
  const hash = createHash("sha256");
  const visit = (path: string): void => {
    const stat = statSync(path);
    if (!stat.isDirectory()) hash.update(`${path}\0${stat.size}\0${stat.mtimeMs}\n`);
    else for (const name of readdirSync(path).sort()) visit(join(path, name));
  };
  for (const path of paths) visit(join(ROOT, path));
  return hash.digest("hex").slice(0, 16);
}

function dropOld(): void {
  const finished = readdirSync(CACHE).filter((name) => !name.includes("."));
  const newest = finished
    .map((name) => ({ name, at: statSync(join(CACHE, name)).mtimeMs }))
    .sort((a, b) => b.at - a.at);
  for (const { name, at } of newest.slice(KEPT)) {
    // One that is younger may be what another run works with.
    if (Date.now() - at > 3_600_000) rmSync(join(CACHE, name), { recursive: true, force: true });
  }
}
