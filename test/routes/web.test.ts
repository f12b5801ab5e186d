import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import Fastify from "fastify";
import { expect, onTestFinished, test } from "vitest";
import { webRoutes } from "../../routes/web.js";
import type { App } from "../../src/http/context.js";
import { call, startServer } from "../support/http-server.js";

async function serve(): Promise<App> {
  const directory = await mkdtemp(join(tmpdir(), "omnid-web-"));
  await writeFile(join(directory, "index.html"), "<!doctype html><title>page</title>");
  await writeFile(join(directory, "app.js"), "export {};");
  await writeFile(join(directory, "app.ts"), "source");
  await writeFile(join(directory, ".env"), "secret");
  await mkdir(join(directory, "assets"));
  await writeFile(join(directory, "assets", "page-4f2a.css"), "main { color: red }".repeat(50));
  await mkdir(join(directory, "inner"));
  await writeFile(join(directory, "inner", "deep.js"), "deep");
  const app = Fastify() as unknown as App;
  await webRoutes(app, directory);
  onTestFinished(async () => {
    await app.close();
    await rm(directory, { recursive: true });
  });
  return app;
}

test("the page is at / and its files beside it, under a policy that lets nothing from elsewhere in", async () => {
  const app = await serve();
  const page = await app.inject("/");
  expect([page.statusCode, page.headers["content-type"]]).toEqual([200, "text/html; charset=utf-8"]);
  expect(page.headers["content-security-policy"]).toMatch(/^default-src 'none';.*frame-ancestors 'none'$/);
  expect(page.headers["content-security-policy"]).not.toMatch(/unsafe|https?:|\*/);
  expect((await app.inject("/app.js")).headers["content-type"]).toBe("text/javascript; charset=utf-8");
});

test("what has its content in its name is kept for good, the page itself is asked for again", async () => {
  const app = await serve();
  const kept = async (path: string) => (await app.inject(path)).headers["cache-control"];
  expect(await kept("/")).toBe("no-cache");
  expect(await kept("/app.js")).toBe("no-cache");
  expect(await kept("/assets/page-4f2a.css")).toBe("public, max-age=31536000, immutable");
});

test("who takes gzip gets it, and the same file all the same", async () => {
  const app = await serve();
  const get = (accept?: string) =>
    app.inject({
      url: "/assets/page-4f2a.css",
      headers: accept === undefined ? {} : { "accept-encoding": accept },
    });
  const plain = await get();
  const packed = await get("br, gzip;q=0.8");
  expect(packed.headers["content-encoding"]).toBe("gzip");
  expect(gunzipSync(packed.rawPayload).toString()).toBe(plain.body);
  expect(packed.rawPayload.length).toBeLessThan(plain.rawPayload.length);
  for (const accept of ["gzip;q=0", "br", "identity"]) {
    expect([accept, (await get(accept)).headers["content-encoding"]]).toEqual([accept, undefined]);
  }
});

test("an unchanged file is 304", async () => {
  const app = await serve();
  const { etag } = (await app.inject("/")).headers;
  for (const header of [String(etag), `W/${etag}`, `"other", ${etag}`, "*"]) {
    const again = await app.inject({ url: "/", headers: { "if-none-match": header } });
    expect([header, again.statusCode, again.body]).toEqual([header, 304, ""]);
  }
  expect((await app.inject({ url: "/", headers: { "if-none-match": '"other"' } })).statusCode).toBe(200);
});

test("H4: no name reaches the disk: neither other types of file, nor deeper or higher ones", async () => {
  const app = await serve();
  for (const path of [
    "/app.ts",
    "/.env",
    "/inner/deep.js",
    "/../app.js",
    "/..%2fapp.js",
    "/%2e%2e/etc/passwd",
    "/index.html",
  ]) {
    expect([path, (await app.inject(path)).statusCode]).toEqual([path, path === "/../app.js" ? 200 : 404]);
  }
});

test("a page that is not there is 404 and stops nothing", async () => {
  const app = Fastify() as unknown as App;
  await webRoutes(app, "/no/such/directory");
  expect((await app.inject("/")).statusCode).toBe(404);
  await app.close();
});

test("the reference page loads from here alone", async () => {
  const server = await startServer();
  const page = await call(server, "GET", "/docs");
  expect(page.status).toBe(200);
  expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
  const files = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] ?? "");
  expect(files.length).toBeGreaterThan(3);
  for (const file of files) {
    expect(file).not.toMatch(/^(https?:)?\/\//);
    expect([file, (await call(server, "GET", new URL(file, `${server.url}/docs`).pathname)).status]).toEqual([
      file,
      200,
    ]);
  }
  expect(page.text).not.toMatch(/<script>|onload=/);
});
