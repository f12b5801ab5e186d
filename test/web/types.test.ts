import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));

test("the page's JavaScript passes the type check that its JSDoc asks for", async () => {
  const tsc = `${root}node_modules/typescript/bin/tsc`;
  const { stdout } = await promisify(execFile)(process.execPath, [tsc, "-p", "src/web"], { cwd: root }).catch(
    (error: { stdout: string }) => error,
  );
  expect(stdout).toBe("");
});

test("every module of the page asks for that check, and none makes HTML or code of text", async () => {
  const directory = `${root}src/web/`;
  const modules = (await readdir(directory)).filter((name) => name.endsWith(".js"));
  expect(modules).toContain("app.js");
  for (const name of modules) {
    const text = await readFile(directory + name, "utf8");
    expect(text.startsWith("// @ts-check\n"), name).toBe(true);
    expect(text, name).not.toMatch(
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function/,
    );
  }
});

test("the page has no inline script or style and asks nothing of another host", async () => {
  const html = await readFile(`${root}src/web/index.html`, "utf8");
  expect(html).not.toMatch(/<style|\sstyle=|\son\w+=|https?:|src="\/\/|<script(?![^>]*\ssrc="\/)/);
});
