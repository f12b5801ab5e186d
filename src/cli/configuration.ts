// The configuration of the server, read for a command in the same way.

import { readFileSync } from "node:fs";
import { type Config, loadConfig } from "../config.js";
import { EXIT_CONFIG } from "../exit-codes.js";
import { printable } from "./printable.js";

/** Runs a command on the configuration of `env`. @returns its exit code, or 78 with every problem on standard error. */
export async function withConfiguration(
  env: NodeJS.ProcessEnv,
  command: (config: Config) => number | Promise<number>,
): Promise<number> {
  const loaded = loadConfig(env, (path) => readFileSync(path, "utf8"));
  if (loaded.ok) return command(loaded.config);
  for (const problem of loaded.problems) process.stderr.write(`${printable(`omnid: ${problem}`)}\n`);
  return EXIT_CONFIG;
}
