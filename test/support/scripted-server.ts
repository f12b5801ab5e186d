// One server and the scripted provider behind it, for all tests of a file. Both are the importing file's own: modules
// are loaded anew for each, and what is assigned here before its first test is what it sees under these names.

import { beforeAll } from "vitest";
import { atFileEnd } from "./at-file-end.js";
import { type Server, startOmnid } from "./server.js";
import { startUpstream, type Upstream } from "./upstream.js";

export let upstream: Upstream;
export let server: Server;

export interface ScriptedOptions {
  env?: Record<string, string>;
  /** What is said of the model beyond where it is. */
  model?: Record<string, unknown>;
}

/** Starts both before the tests of the `describe` that calls it, and not where those are skipped. */
export function startScripted({ env = {}, model = {} }: ScriptedOptions = {}): void {
  beforeAll(async () => {
    upstream = await startUpstream(atFileEnd);
    server = await startOmnid({ atEnd: atFileEnd, config: upstream.config(model), env });
  });
}
