// Where the log goes: standard error, whatever that is.

import { fstatSync } from "node:fs";
import type { Clock } from "../clock.js";
import { FileOutput } from "./log-file.js";
import { type LogOutput, streamOutput } from "./log-output.js";

const STANDARD_ERROR = 2;

let ofProcess: LogOutput | undefined;

/**
 * The one of the process, however often it is asked for.
 * @param clock stamps the line that says how many were dropped
 */
export function standardError(clock: Clock): LogOutput {
  ofProcess ??= open(clock);
  return ofProcess;
}

function open(clock: Clock): LogOutput {
  if (!isFile(STANDARD_ERROR)) return streamOutput(process.stderr, clock);
  const file = new FileOutput(STANDARD_ERROR, clock);
  process.once("exit", () => file.writeAtExit());
  return file;
}

/** Node's own stream on a file would write in the foreground, and end at the first fault. */
function isFile(fd: number): boolean {
  try {
    return fstatSync(fd).isFile();
  } catch {
    return false; // Closed: writing to it says so, and that is heard.
  }
}
