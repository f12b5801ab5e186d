// Real proxies in front of a server: each on a port of its own, with a configuration in a folder of its own, ended by pid.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { freePort } from "./free-port.js";
import { temporaryFolder } from "./server.js";

/** The program, where it is installed: administrators' programs are not on everybody's PATH. */
export function programAt(name: string): string | undefined {
  const folders = [...(process.env.PATH ?? "").split(":"), "/usr/sbin", "/usr/local/sbin"];
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

export const NGINX = programAt("nginx");
export const HAPROXY = programAt("haproxy");

export interface Front {
  url: string;
  stop(): Promise<void>;
}

/** @param directives go into the `location` of a configuration that is otherwise what the package brings. */
export function startNginx(upstreamPort: number, directives = ""): Promise<Front> {
  const folder = temporaryFolder();
  for (const name of ["body", "proxy", "fastcgi", "uwsgi", "scgi"]) mkdirSync(join(folder, name));
  const asRoot = process.getuid?.() === 0 ? "user root;" : "";
  return launch(NGINX as string, (port) => {
    const path = join(folder, "nginx.conf");
    writeFileSync(
      path,
      `daemon off; ${asRoot} worker_processes 1; pid ${folder}/pid; error_log stderr;
      events { worker_connections 256; }
      http {
        access_log off;
        client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/fastcgi;
        uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
        server {
          listen 127.0.0.1:${port};
          location / { proxy_pass http://127.0.0.1:${upstreamPort}; ${directives} }
        }
      }`,
    );
    return ["-p", folder, "-c", path];
  });
}

/** @param options lines of the `defaults` section */
export function startHaproxy(upstreamPort: number, ...options: string[]): Promise<Front> {
  const folder = temporaryFolder();
  return launch(HAPROXY as string, (port) => {
    const path = join(folder, "haproxy.cfg");
    const lines = [
      "defaults",
      "  mode http",
      "  timeout connect 5s",
      "  timeout client 60s",
      "  timeout server 60s",
      ...options.map((option) => `  ${option}`),
      "listen omnid",
      `  bind 127.0.0.1:${port}`,
      `  server one 127.0.0.1:${upstreamPort}`,
    ];
    writeFileSync(path, `${lines.join("\n")}\n`);
    return ["-db", "-f", path];
  });
}

/** A port that was free may be taken by another before the proxy has it: then it is tried with another one. */
async function launch(program: string, configure: (port: number) => string[]): Promise<Front> {
  let said = "";
  for (let tries = 0; tries < 5; tries++) {
    const port = await freePort();
    const child = spawn(program, configure(port), { stdio: ["ignore", "pipe", "pipe"] });
    for (const output of [child.stdout, child.stderr]) output.on("data", (text) => (said += String(text)));
    const exited = once(child, "close");
    const stop = async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM");
      await exited;
    };
    const url = `http://127.0.0.1:${port}`;
    if (await answers(url, child)) {
      onTestFinished(stop);
      return { url, stop };
    }
    await stop();
  }
  throw new Error(`${program} does not start: ${said}`);
}

/** Resolves once the server answers through the proxy, or the proxy has ended. */
async function answers(url: string, child: { exitCode: number | null }): Promise<boolean> {
  while (child.exitCode === null) {
    const response = await fetch(`${url}/healthz`).catch(() => undefined);
    await response?.text();
    if (response?.status === 200) return true;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return false;
}
