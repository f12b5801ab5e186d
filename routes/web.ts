// The page. Its files are read once and each gets a route of its own: no name from a request ever reaches the disk.

import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import type { App } from "../src/http/context.js";

const DIRECTORY = fileURLToPath(new URL("../src/web/", import.meta.url));

const TYPES: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".woff2": "font/woff2",
  ".webmanifest": "application/manifest+json",
};

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  // A picture from elsewhere would tell its host who reads what; those in the conversation come as data.
  "img-src 'self' data: blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

export async function webRoutes(app: App, directory: string = DIRECTORY): Promise<void> {
  for (const name of await namesIn(directory)) {
    const type = TYPES[extname(name)];
    if (type === undefined) continue;
    const body = await readFile(`${directory}/${name}`);
    const etag = `"${createHash("sha256").update(body).digest("base64url").slice(0, 27)}"`;
    app.route({
      method: "GET",
      url: name === "index.html" ? "/" : `/${name}`,
      schema: { hide: true },
      handler: async (request, reply) => {
        reply.headers({
          etag,
          "cache-control": "no-cache",
          "content-security-policy": POLICY,
          "referrer-policy": "no-referrer",
          "cross-origin-opener-policy": "same-origin",
        });
        if (matches(request.headers["if-none-match"], etag)) return reply.code(304).send();
        return reply.type(type).send(body);
      },
    });
  }
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    const entries = await readdir(directory, { withFileTypes: true });
    return entries.flatMap((entry) => (entry.isFile() ? [entry.name] : [])).sort();
  } catch (error) {
    // A server without the page is a server all the same.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

function matches(header: string | undefined, etag: string): boolean {
  return header?.split(",").some((each) => [etag, `W/${etag}`, "*"].includes(each.trim())) ?? false;
}
