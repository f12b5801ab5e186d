// The proxies' files of docs/operations.md, as they stand but for ports, paths and TLS, with a server behind them: a Task
// that waits for a person can only end when the proxy lets the question through at once.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { freePort } from "../support/free-port.js";
import { type Server, startOmnid, temporaryFolder } from "../support/server.js";
import { openSse } from "../support/sse-client.js";

const EXAMPLES = fileURLToPath(new URL("../../docs/examples", import.meta.url));
const NAME = "omnid.example.org";
const nginx = process.env.OMNID_NGINX ?? "nginx";
const haproxy = process.env.OMNID_HAPROXY ?? "haproxy";

const has = (command: string) => spawnSync(command, ["-v"]).error === undefined;
for (const command of [nginx, haproxy]) if (!has(command)) console.warn(`not tried behind a proxy: no ${command} here`);

test.skipIf(!has(nginx))("a Task with an approval goes through nginx, and a token is not in its log", async () => {
  const folder = temporaryFolder();
  const port = await freePort();
  const server = await startOmnid({ env: { OMNID_ALLOWED_HOSTS: NAME, OMNID_TOKENS: "ada:secret-of-ada" } });
  const site = readFileSync(join(EXAMPLES, "nginx.conf"), "utf8")
    .replaceAll("127.0.0.1:8420", `127.0.0.1:${server.port}`)
    .replace("listen 443 ssl http2", `listen 127.0.0.1:${port}`)
    .replace("/var/log/nginx", folder)
    .replaceAll(/^ *ssl_.*\n/gm, "");
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (each) => `${each}_temp_path ${folder}/${each};`,
  );
  const file = join(folder, "nginx.conf");
  writeFileSync(
    file,
    `daemon off; pid ${folder}/pid; error_log ${folder}/errors; events {} http { ${paths.join(" ")}\n${site}\n}`,
  );
  mkdirSync(join(folder, "logs"));
  await running(spawn(nginx, ["-p", folder, "-e", join(folder, "errors"), "-c", file]), port);
  await runTask(server, port);
  // A stream is logged once it is over, which nginx finds out in its own time.
  const log = () => readFileSync(join(folder, "omnid.log"), "utf8");
  await expect.poll(log, { timeout: 10_000 }).toMatch(/"GET \/api\/sessions\/[\w-]+\/stream"/);
  expect(log()).not.toContain("secret-of-ada");
});

test.skipIf(!has(haproxy))("a Task with an approval goes through HAProxy", async () => {
  const folder = temporaryFolder();
  const port = await freePort();
  const server = await startOmnid({ env: { OMNID_ALLOWED_HOSTS: NAME, OMNID_TOKENS: "ada:secret-of-ada" } });
  const file = join(folder, "haproxy.cfg");
  writeFileSync(
    file,
    readFileSync(join(EXAMPLES, "haproxy.cfg"), "utf8")
      .replace("127.0.0.1:8420", `127.0.0.1:${server.port}`)
      .replace(/bind :443.*/, `bind 127.0.0.1:${port}`),
  );
  await running(spawn(haproxy, ["-f", file]), port);
  await runTask(server, port);
});

/** Resolves once the proxy answers; it is ended with the test. */
async function running(child: ChildProcess, port: number): Promise<void> {
  let said = "";
  child.stderr?.on("data", (bytes) => {
    said += bytes;
  });
  const ended = once(child, "close");
  onTestFinished(async () => {
    child.kill();
    await ended;
  });
  const answers = () =>
    fetch(`http://127.0.0.1:${port}/healthz`).then(
      ({ status }) => status,
      () => child.exitCode,
    );
  await expect.poll(answers, { timeout: 10_000, message: said }).toBe(200);
}

async function runTask(server: Server, port: number): Promise<void> {
  const base = `http://127.0.0.1:${port}/api/sessions`;
  const headers = { authorization: "Bearer secret-of-ada", "content-type": "application/json", host: NAME };
  const call = async (path: string, body: unknown) => {
    const response = await fetch(base + path, { method: "POST", headers, body: JSON.stringify(body) });
    expect(response.ok, `${path}: ${response.status}`).toBe(true);
    return response.status === 204 ? undefined : response.json();
  };
  const { sessionId } = (await call("", {})) as { sessionId: string };
  const stream = await openSse(`${base}/${sessionId}/stream?access_token=secret-of-ada`, {
    headers: { host: NAME },
  });
  await call(`/${sessionId}/tasks`, { input: "/run echo through" });
  const { data } = await stream.until((event) => event.data.type === "approval_request");
  await call(`/${sessionId}/approvals/${data.toolCall.payload.tool_call_id}`, { decision: "allow" });
  await stream.untilEnded();
  expect(stream.messages.some(({ payload }) => "output" in payload && payload.output === "through\n")).toBe(true);
  expect(server.printed()).not.toContain("secret-of-ada");
  stream.close();
}
