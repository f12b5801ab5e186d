// Writes openapi.yaml into the current directory, from the routes as they are. Run by `npm run openapi`.

import { writeFile } from "node:fs/promises";
import { systemClock } from "../clock.js";
import { loadConfig } from "../config.js";
import type { SessionHost } from "../session/types.js";
import { createServer } from "./server.js";

await writeFile("openapi.yaml", await renderOpenApi());

async function renderOpenApi(): Promise<string> {
  const loaded = loadConfig({ LOG_LEVEL: "silent" }, () => "{}");
  if (!loaded.ok) throw new Error(loaded.problems.join("\n"));
  const parts = { config: loaded.config, host: noHost(), clock: systemClock(), newId: () => "openapi" };
  const app = await createServer(parts);
  const { payload: yaml } = await app.inject({ url: "/openapi.yaml", headers: { host: "localhost" } });
  await app.close();
  return yaml;
}

// No request is served while the document is written.
function noHost(): SessionHost {
  return new Proxy({} as SessionHost, {
    get: (_target, name) => {
      throw new Error(`the document asks no Session anything: ${String(name)}`);
    },
  });
}
