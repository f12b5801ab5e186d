// The real Sessions behind the real routes, in this process: a data directory of its own, a free port, and every JSON
// answer held against the schema of its route.

import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { systemClock } from "../../src/clock.js";
import { createLog } from "../../src/http/logging.js";
import { createMetrics } from "../../src/http/metrics.js";
import { createServer } from "../../src/http/server.js";
import { hostSessions } from "../../src/main.js";
import type { SessionManager } from "../../src/session/session-manager.js";
import { configOf, misfitOf } from "./http-server.js";

export interface RealServer {
  url: string;
  dataDir: string;
  host: SessionManager;
}

/** Starts it until the test ends; `files` are what OMNID_CONFIG may name. */
export async function startRealServer(
  env: Record<string, string> = {},
  files: Record<string, string> = {},
): Promise<RealServer> {
  const dataDir = mkdtempSync(join(tmpdir(), "omnid-test-"));
  const config = configOf({ LOG_LEVEL: "fatal", OMNID_DEMO_DELAY_MS: "0", OMNID_DATA_DIR: dataDir, ...env }, files);
  const log = createLog(config);
  const clock = systemClock();
  const metrics = createMetrics();
  const host = await hostSessions(config, log, clock, metrics);
  const app = await createServer({ config, host, clock, newId: () => randomUUID().replaceAll("-", ""), log, metrics });
  const misfits: string[] = [];
  app.addHook("onSend", async (request, reply, payload) => {
    const misfit = misfitOf(request, reply, payload);
    if (misfit !== undefined) misfits.push(misfit);
  });
  await app.listen({ host: config.host, port: 0 });
  onTestFinished(async () => {
    await host.drain(1_000);
    app.server.closeAllConnections();
    await app.close();
    rmSync(dataDir, { recursive: true, force: true });
    if (misfits.length > 0) throw new Error(misfits.join("\n"));
  });
  const { port } = app.server.address() as { port: number };
  return { url: `http://127.0.0.1:${port}`, dataDir, host };
}
