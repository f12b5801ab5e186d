// The page as it was bundled. Its files are read once and each gets a route of its own: no name from a request ever
// reaches the disk. What is below `assets/` has its content in its name, so a browser keeps it for good and asks again
// for the page alone.

import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { App } from "../src/http/context.js";

// Run from its sources, the server has the page of the last build.
const BUILT = import.meta.url.endsWith(".ts") ? "../dist/web/" : "../web/";
const DIRECTORY = fileURLToPath(new URL(BUILT, import.meta.url));

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
  // No text becomes markup but by the sanitiser.
  "require-trusted-types-for 'script'",
  "trusted-types dompurify",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const FOR_GOOD = "public, max-age=31536000, immutable";

export async function webRoutes(app: App, directory: string = DIRECTORY): Promise<void> {
  for (const name of [...(await namesIn(directory)), ...(await namesIn(directory, "assets/"))]) {
    const type = TYPES[extname(name)];
    if (type === undefined) continue;
    const body = await readFile(`${directory}/${name}`);
    // When it is first wanted: most servers are asked for the page late or never, and all are waited for at their start.
    let packed: Promise<Buffer> | undefined;
    const isPacked = /^text\/|svg/.test(type);
    const etag = `"${createHash("sha256").update(body).digest("base64url").slice(0, 27)}"`;
    app.route({
      method: "GET",
      url: name === "index.html" ? "/" : `/${name}`,
      schema: { hide: true },
      handler: async (request, reply) => {
        reply.headers({
          etag,
          "cache-control": name.startsWith("assets/") ? FOR_GOOD : "no-cache",
          "content-security-policy": POLICY,
          "referrer-policy": "no-referrer",
          "cross-origin-opener-policy": "same-origin",
          "x-content-type-options": "nosniff",
          vary: "accept-encoding",
        });
        if (matches(request.headers["if-none-match"], etag)) return reply.code(304).send();
        if (!isPacked || !takesGzip(request.headers["accept-encoding"])) return reply.type(type).send(body);
        packed ??= promisify(gzip)(body);
        // The bytes are others, what they mean is the same.
        return reply
          .type(type)
          .headers({ "content-encoding": "gzip", etag: `W/${etag}` })
          .send(await packed);
      },
    });
  }
}

async function namesIn(directory: string, below = ""): Promise<string[]> {
  try {
    const entries = await readdir(`${directory}/${below}`, { withFileTypes: true });
    return entries.flatMap((entry) => (entry.isFile() ? [`${below}${entry.name}`] : [])).sort();
  } catch (error) {
    // A server without the page is a server all the same.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** Bytes as they are are always fine, so only the plain cases are told apart. */
function takesGzip(header: string | string[] | undefined): boolean {
  return /(?:^|,)\s*gzip\s*(?:,|$|;\s*q=(?:1|0?\.[0-9]*[1-9]))/i.test(String(header ?? ""));
}

function matches(header: string | undefined, etag: string): boolean {
  return header?.split(",").some((each) => [etag, `W/${etag}`, "*"].includes(each.trim())) ?? false;
}
