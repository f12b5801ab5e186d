// What a model writes, as the page shows it: Markdown that is safe, code with colours, and nothing from elsewhere.

import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { makeSession } from "../e2e/api.js";
import { server, startScripted, upstream } from "../support/scripted-server.js";
import { answer, finish, gate, say, usage } from "../support/upstream.js";
import { hasBrowser, openWindow, ready, send } from "./browser.js";

describe.skipIf(!hasBrowser)("a text of the model", { timeout: 120_000 }, () => {
  startScripted();

  async function shown(text: string): Promise<Page> {
    const id = await makeSession(server, { title: "text" });
    const page = await (await openWindow())(`${server.url}/#${id}`);
    await ready(page);
    // In pieces, so that it is parsed again and again while it grows.
    upstream.script({ steps: [...say(...(text.match(/[\s\S]{1,7}/g) ?? [])), ...finish("stop", usage(1, 1))] });
    await send(page, "write");
    await page.locator("article.assistant").waitFor();
    await ready(page);
    return page;
  }

  const prose = (page: Page) => page.locator("article.assistant .prose");

  test("HTML in it is text, wherever it stands, and runs nothing", async () => {
    const evil = `<img src=x onerror="window.hit=1"><script>window.hit=1</script><svg onload="window.hit=1">`;
    const text = [
      `Prose ${evil} goes on.`,
      evil,
      `- an item ${evil}`,
      `> quoted ${evil}`,
      `| a ${evil} | b |\n|---|---|\n| 1 | 2 |`,
      `\`\`\`html\n${evil}\n\`\`\``,
      `# A title ${evil}`,
    ].join("\n\n");
    const page = await shown(text);
    const told = (await prose(page).textContent()) ?? "";
    expect(told.split(evil).length - 1).toBe(7);
    expect(await prose(page).locator("img, script, svg, iframe, style").count()).toBe(0);
    expect(await page.evaluate("window.hit")).toBeUndefined();
  });

  test("links lead out by http and mail alone, in a tab that knows nothing of this one", async () => {
    const bad = [
      "javascript:window.hit=1",
      "data:text/html,x",
      "file:///etc/passwd",
      "//elsewhere.example",
      "vbscript:x",
    ];
    const links = [...bad, "https://good.example/a", "mailto:ada@good.example"].map((href) => `[to ${href}](${href})`);
    const page = await shown(links.join("\n\n"));
    const found = await prose(page)
      .locator("a[href]")
      .evaluateAll((nodes) => nodes.map((node) => [node.getAttribute("href"), node.getAttribute("rel")]));
    expect(found).toEqual([
      ["https://good.example/a", "noopener noreferrer"],
      ["mailto:ada@good.example", "noopener noreferrer"],
    ]);
    // What is refused neither looks nor opens like a link.
    const refused = prose(page).locator("a:not([href])");
    expect(await refused.count()).toBe(bad.length);
    expect(await prose(page).locator("a:not([href])[target]").count()).toBe(0);
  });

  test("a picture from elsewhere is named and not loaded; one that came as data is shown", async () => {
    const pixel =
      "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const page = await shown(
      `![a pixel](https://track.example/p.png)\n\n![here](${pixel})\n\n![bad](data:image/svg+xml,x)`,
    );
    // The window's own check fails the test on any request to another host.
    expect(
      await prose(page)
        .locator("img")
        .evaluateAll((nodes) => nodes.map((node) => node.getAttribute("alt"))),
    ).toEqual(["here"]);
    expect(await prose(page).locator("a").first().textContent()).toBe("a pixel (picture, not loaded)");
  });

  test("code has its language, its colours and a button that copies exactly it", async () => {
    const page = await shown("Look:\n\n```ts\nconst a: number = 1; // one\n```\n\nand `inline`.");
    const code = prose(page).locator(".code");
    await code.locator(".hljs-keyword", { hasText: "const" }).waitFor();
    expect(await code.locator(".code-bar span").textContent()).toBe("ts");
    expect(await code.locator("code").textContent()).toBe("const a: number = 1; // one");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await code.getByRole("button", { name: "Copy" }).click();
    await code.getByRole("button", { name: "Copied" }).waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe("const a: number = 1; // one");
  });

  test("blocks are what they are written as", async () => {
    const page = await shown(
      "# Title\n\n- [x] done\n- [ ] open\n\n3. first\n4. second\n\n> quoted\n\n---\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n2 * 3 * 4 and snake_case_name",
    );
    const tags = await prose(page)
      .locator(".block > *")
      .evaluateAll((nodes) => nodes.map((node) => node.nodeName));
    expect(tags).toEqual(["H3", "UL", "OL", "BLOCKQUOTE", "HR", "TABLE", "P"]);
    expect(await prose(page).locator("ol").getAttribute("start")).toBe("3");
    expect(await prose(page).locator("td").last().getAttribute("align")).toBe("right");
    expect(await prose(page).locator("ul li").allTextContents()).toEqual(["☑ done", "☐ open"]);
    expect(await prose(page).locator(".block").last().textContent()).toContain("2 * 3 * 4 and snake_case_name");
  });

  test("what stands is not touched while the rest is being written: a selection in it holds", async () => {
    const id = await makeSession(server, { title: "text" });
    const page = await (await openWindow())(`${server.url}/#${id}`);
    await ready(page);
    const rest = gate();
    const more = Array.from({ length: 30 }, (_, index) => `word${index} `);
    upstream.script({
      steps: [...say("The first paragraph.\n\nThe second "), rest, ...say(...more), ...finish("stop", usage(1, 1))],
    });
    await send(page, "write");
    await prose(page).getByText("The second").waitFor();
    await page.evaluate("getSelection().selectAllChildren(document.querySelector('.prose .block'))");
    rest.open();
    await prose(page).getByText("word29").waitFor();
    await ready(page);
    expect(await page.evaluate("getSelection().toString().trim()")).toBe("The first paragraph.");
  });

  test("an unknown language and half a fence are plain code", async () => {
    const page = await shown("```nosuchlanguage\nx = <y>\n```\n\nand\n\n```\n# no heading");
    expect(await prose(page).locator(".code code").allTextContents()).toEqual(["x = <y>", "# no heading"]);
  });

  test("an answer that is only HTML has its words in the list of Sessions too, as text", async () => {
    upstream.script(answer("<b>bold</b>"));
    const page = await (await openWindow())(server.url);
    await send(page, "<b>title</b>");
    await ready(page);
    expect(await page.locator("#sessions .current .name").textContent()).toBe("<b>title</b>");
    expect(await page.locator("#sessions b, .prose b").count()).toBe(0);
  });
});
