// The page in a real browser against the real server.

import { once } from "node:events";
import { createServer as createProxy, request as sendOn } from "node:http";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { api } from "../e2e/api.js";
import { atFileEnd } from "../support/at-file-end.js";
import { freePort } from "../support/free-port.js";
import { type Server, startOmnid } from "../support/server.js";
import { gate } from "../support/upstream.js";
import {
  activity,
  expectNoSidewaysScroll,
  hasBrowser,
  openWindow,
  question,
  readQuestion,
  ready,
  send,
  shownItems,
} from "./browser.js";

const LONG = Array.from({ length: 120 }, (_, index) => `thought${index}`).join(" ");
const idOf = (page: Page) => new URL(page.url()).hash.slice(1);

/** What a page shows that comes when all is over. */
async function shownAfresh(page: Page): Promise<string[]> {
  await page.reload();
  await ready(page);
  return shownItems(page);
}

describe.skipIf(!hasBrowser)("the page", { timeout: 180_000 }, () => {
  let server: Server;
  beforeAll(async () => {
    if (hasBrowser) server = await startOmnid({ atEnd: atFileEnd, env: { OMNID_DEMO_DELAY_MS: "15" } });
  });

  test("a prompt starts a Session; the command waits for Allow, runs, and is reported on", async () => {
    const page = await (await openWindow())(server.url);
    await send(page, "/run for i in 1 2 3; do echo line $i; sleep 0.2; done; exit 4");
    await question(page).waitFor();
    await expect.poll(() => page.title(), { timeout: 20_000 }).toContain("(1)");
    expect(await question(page).textContent()).toContain("for i in 1 2 3");
    await activity(page, "Waiting for your approval");
    await page.getByRole("button", { name: "Allow" }).click();
    const card = page.locator(".tool");
    await card.locator(".output", { hasText: "line 1" }).waitFor();
    await ready(page);
    expect(await card.locator(".state").textContent()).toBe("Exit code 4");
    expect(await card.locator(".output").textContent()).toBe("line 1\nline 2\nline 3\n[exit code 4]");
    expect(await page.locator("#items article.user").count()).toBe(1);
    expect(await page.locator("#usage").textContent()).toMatch(/^[\d.]+k? in · [\d.]+k? out$/);
    expect(await page.locator("#sessions [aria-current]").textContent()).toContain("/run for i in 1 2 3");
    const live = await shownItems(page);
    expect(await shownAfresh(page)).toEqual(live);
  });

  test("a denial with a reason is told to the model and shown on the card", async () => {
    const page = await (await openWindow())(server.url);
    await send(page, "/run rm -rf everything");
    await question(page).getByRole("textbox").fill("Not on my machine");
    await page.getByRole("button", { name: "Deny" }).click();
    await ready(page);
    expect(await page.locator(".tool .state").textContent()).toBe("Denied");
    expect(await page.locator(".tool .output").textContent()).toContain("Not on my machine");
    expect(await question(page).count()).toBe(0);
  });

  test("A18: a reload in mid-stream shows all that was said, and the end of it once", async () => {
    const page = await (await openWindow())(server.url);
    await send(page, `/think ${LONG}`);
    await page.locator(".thinking", { hasText: "thought20" }).waitFor({ state: "attached" });
    await page.reload();
    await page.locator(".thinking", { hasText: "thought20" }).waitFor({ state: "attached" });
    expect(await page.locator(".thought").textContent()).toContain("thought0 thought1 thought2");
    await page.reload();
    await ready(page);
    const live = await shownItems(page);
    expect(live.join("\n").match(/thought119/g)?.length).toBe(2);
    expect(await shownAfresh(page)).toEqual(live);
  });

  test("E2 E3: an approval is asked again after a reload, and is gone when the Task is stopped", async () => {
    const page = await (await openWindow())(server.url);
    await send(page, "/run echo never");
    await question(page).waitFor();
    await page.reload();
    await question(page).waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await ready(page);
    expect(await question(page).count()).toBe(0);
    expect(await page.locator(".tool .state").textContent()).toBe("Interrupted");
    expect(await page.locator(".notice").last().textContent()).toContain("You stopped this.");
  });

  test("a second tab shows the prompts of the first in their place, and may answer for it", async () => {
    const tab = await openWindow();
    const one = await tab(server.url);
    await send(one, "/think first");
    await ready(one);
    const two = await tab(one.url());
    await ready(two);
    await send(one, "/run echo from one");
    await question(one).waitFor();
    await question(two).getByRole("button", { name: "Allow" }).click();
    await question(one).waitFor({ state: "detached" });
    await ready(one);
    await send(two, "/think third");
    await one.locator("article.user", { hasText: "third" }).waitFor();
    await ready(one);
    await ready(two);
    expect(await one.locator("article.user .bubble").allTextContents()).toEqual([
      "/think first",
      "/run echo from one",
      "/think third",
    ]);
    await expect.poll(() => shownItems(two), { timeout: 20_000 }).toEqual(await shownItems(one));
    expect(await shownAfresh(two)).toEqual(await shownItems(one));
  });

  test("a prompt on its way is told as being sent, not as a Session that is ready", async () => {
    const page = await (await openWindow())(server.url);
    const held = gate();
    await page.route("**/tasks", async (route) => {
      await held.opened;
      await route.continue();
    });
    await send(page, "/think slowly");
    await page.locator("#sessions [aria-current]").waitFor();
    await activity(page, "Sending");
    expect(await page.locator("#activity").textContent()).toBe("Sending");
    held.open();
    await ready(page);
    await page.locator(".thinking", { hasText: "slowly" }).waitFor({ state: "attached" });
  });

  test("markup in a prompt, a thought, an answer, a command, its output and a title stays text", async () => {
    const page = await (await openWindow())(server.url);
    const evil = `<img src=x onerror="window.hit=1"><script>window.hit=1</script>`;
    await send(page, `/think ${evil}`);
    await ready(page);
    await send(page, `/run printf '%s' '${evil}'`);
    await page.getByRole("button", { name: "Allow" }).click();
    await ready(page);
    expect(await page.locator(".tool .output").textContent()).toContain(evil);
    expect(await page.locator("#title").textContent()).toContain("<img src=x");
    expect(await page.locator("main img, #app script, #sessions img").count()).toBe(0);
    expect(await page.evaluate("window.hit")).toBeUndefined();
  });

  test.each([
    [390, "light"],
    [390, "dark"],
    [1280, "light"],
  ] as const)("at %i px (%s) everything is in sight and in reach", async (width, colorScheme) => {
    const page = await (await openWindow({ viewport: { width, height: 780 }, colorScheme }))(server.url);
    await send(page, `/run echo ${"x".repeat(300)}; seq 1 400`);
    await question(page).waitFor();
    await expectNoSidewaysScroll(page);
    await page.getByRole("button", { name: "Allow" }).click();
    await ready(page);
    await expectNoSidewaysScroll(page);
    for (const id of ["#prompt", "#send", "#link", "#model", "#mode", "#thinking", "#session-menu"]) {
      const box = await page.locator(id).boundingBox();
      expect(box && box.x >= 0 && box.x + box.width <= width && box.y >= 0 && box.y + box.height <= 780, id).toBe(true);
    }
    // Also where the list is a drawer that is closed.
    expect(await page.getByRole("heading", { level: 1 }).count()).toBe(1);
    const list = page.getByRole("complementary");
    if (width < 768) {
      expect(await list.isVisible()).toBe(false);
      await page.getByRole("button", { name: "Sessions" }).click();
    }
    await list.getByRole("button", { name: "New session" }).click();
    await page.getByText("What should be done?").waitFor();
    await expectNoSidewaysScroll(page);
  });

  test.each([390, 1280])(
    "at %i px a model's name of any length leaves the approvals readable, idle and at work",
    async (width) => {
      const modelId = `a-model-${"with-a-long-name-".repeat(5)}20260718`;
      const config = { models: [{ provider: "a-provider-of-many-models", modelId, protocol: "demo" }] };
      const named = await startOmnid({ config });
      const viewport = { width, height: 780 };
      const plain = await (await openWindow({ viewport }))(server.url);
      const page = await (await openWindow({ viewport }))(named.url);
      const widthOf = async (where: Page) => (await where.locator("#mode").boundingBox())?.width ?? 0;
      await page.locator("#model option", { hasText: modelId }).waitFor({ state: "attached" });
      await plain.locator("#model option").first().waitFor({ state: "attached" });
      expect(await widthOf(page)).toBe(await widthOf(plain));
      await send(page, "/run echo busy");
      await question(page).waitFor();
      expect(await widthOf(page)).toBe(await widthOf(plain));
      for (const id of ["#model", "#thinking", "#stop", "#when-busy", "#send"]) {
        const box = await page.locator(id).boundingBox();
        expect(box && box.width > 30 && box.x >= 0 && box.x + box.width <= width, id).toBe(true);
      }
      await expectNoSidewaysScroll(page);
    },
  );

  test("Shift+Enter makes a line, Enter sends, and the approval is answered by keyboard alone", async () => {
    const page = await (await openWindow())(server.url);
    await page.getByLabel("Prompt", { exact: true }).focus();
    await page.keyboard.type("/run echo a");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("echo b");
    await page.keyboard.press("Enter");
    await readQuestion(page);
    await page.getByRole("button", { name: "Allow" }).focus();
    await page.keyboard.press("Enter");
    await ready(page);
    expect(await page.locator("article.user .bubble").textContent()).toBe("/run echo a\necho b");
    expect(await page.evaluate("document.activeElement.id")).toBe("prompt");
  });

  test("a change of the approval mode decides what is pending, and a deleted Session leaves the list in every tab", async () => {
    const tab = await openWindow();
    const page = await tab(server.url);
    await send(page, "/run echo mode");
    await question(page).waitFor();
    await page.locator("#mode").selectOption("allow-all");
    await ready(page);
    expect(await page.locator(".tool .approved").textContent()).toBe("Allowed by the Session's mode");
    const other = await tab(server.url);
    const row = other.locator("#sessions button", { hasText: "/run echo mode" });
    await row.waitFor();
    await page.locator("#session-menu").click();
    await page.getByRole("menuitem", { name: "Delete…" }).click();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("What should be done?").waitFor();
    await row.waitFor({ state: "detached" });
  });

  test("what is being written for a Session that goes stays in the box, and begins another only when that was said", async () => {
    const page = await (await openWindow())(server.url);
    const prompt = page.getByLabel("Prompt", { exact: true });
    await send(page, "/think before");
    await ready(page);
    await prompt.fill("/think an important draft");
    const id = idOf(page);
    expect((await api(server, "DELETE", `/api/sessions/${id}`)).status).toBeLessThan(300);
    await page.getByText("What was written for it is kept.").waitFor();
    expect(await prompt.inputValue()).toBe("/think an important draft");
    await prompt.press("Enter");
    await page.getByText("Send it again to begin a new one.").waitFor();
    expect(await prompt.inputValue()).toBe("/think an important draft");
    expect(idOf(page)).toBe("");
    await prompt.press("Enter");
    await ready(page);
    expect(idOf(page)).not.toBe(id);
    expect(await page.evaluate("JSON.stringify({ ...sessionStorage })")).not.toContain(id);
  });

  test("a refusal is shown in the server's words, and the prompt stays in the box", async () => {
    const page = await (await openWindow())(server.url);
    await page.getByLabel("Workspace").fill("/no/such/folder");
    await send(page, "hello");
    await page.getByRole("alert").filter({ hasText: "must be the absolute path of an existing directory" }).waitFor();
    expect(await page.getByLabel("Prompt", { exact: true }).inputValue()).toBe("hello");
  });

  test("B12: with seven tabs open the seventh still takes a prompt and shows the answer", async () => {
    const tab = await openWindow();
    const pages: Page[] = [];
    for (let n = 1; n <= 7; n += 1) {
      const made = await api(server, "POST", "/api/sessions", { title: `tab ${n}` });
      const page = await tab(`${server.url}/#${made.body.sessionId}`);
      await ready(page);
      pages.push(page);
    }
    const last = pages.at(-1) as Page;
    await send(last, "/run echo seventh");
    await question(last).getByRole("button", { name: "Allow" }).click();
    await last.locator(".tool .output", { hasText: "seventh" }).waitFor();
    await ready(last);
    // A tab that closes gives its stream to one that had none.
    for (const page of pages.slice(0, 6)) await page.close();
    await last.locator("#link", { hasText: "Live" }).waitFor();
  });
});

describe.skipIf(!hasBrowser)("the page and its server", { timeout: 180_000 }, () => {
  test("A25: while the server is away the page says so and keeps what it has; it comes back by itself", async () => {
    const server = await startOmnid({ env: { PORT: String(await freePort()), OMNID_DEMO_DELAY_MS: "5" } });
    const page = await (await openWindow())(server.url);
    await send(page, "/think before");
    await ready(page);
    const before = await shownItems(page);
    await server.stop("SIGKILL");
    await page.locator("#link", { hasText: "Reconnecting in" }).waitFor();
    expect(await shownItems(page)).toEqual(before);
    expect(await page.locator("#activity").textContent()).toBe("Ready");
    await server.restart();
    await page.locator("#link", { hasText: "Live" }).waitFor();
    expect(await shownItems(page)).toEqual(before);
    await send(page, "/think after");
    await page.locator("article.assistant").nth(1).waitFor();
    await ready(page);
    expect(await shownAfresh(page)).toEqual(await shownItems(page));
  });

  test("a server that dies in mid-answer leaves what was said; back again, the page says what came of it, each thing once", async () => {
    const server = await startOmnid({ env: { PORT: String(await freePort()), OMNID_DEMO_DELAY_MS: "30" } });
    const page = await (await openWindow())(server.url);
    await send(page, "/think first");
    await ready(page);
    await send(page, `/think ${LONG}`);
    await page.locator(".thinking", { hasText: "thought9" }).waitFor({ state: "attached" });
    await server.stop("SIGKILL");
    await page.locator("#link", { hasText: "Reconnecting in" }).waitFor();
    expect(await page.locator(".thought").last().textContent()).toContain("thought9");
    await server.restart();
    await page.locator("#link", { hasText: "Live" }).waitFor();
    await page.locator(".notice", { hasText: "the server was restarted" }).waitFor();
    await ready(page);
    expect(await page.locator("article.user .bubble").allTextContents()).toEqual(["/think first", `/think ${LONG}`]);
    const live = await shownItems(page);
    expect(await shownAfresh(page)).toEqual(live);
    await send(page, "/think on");
    await page.locator(".thinking", { hasText: "on" }).last().waitFor({ state: "attached" });
    await ready(page);
  });

  test("what a subagent said is there after the server was killed, too", async () => {
    const server = await startOmnid({ env: { PORT: String(await freePort()), OMNID_DEMO_DELAY_MS: "0" } });
    const page = await (await openWindow())(server.url);
    await page.locator("#mode").selectOption("allow-all");
    await send(page, "/subagent /run echo from the child");
    await ready(page);
    const said = page.locator(".subagent .prose pre", { hasText: "from the child" });
    await said.waitFor();
    await server.stop("SIGKILL");
    await page.locator("#link", { hasText: "Reconnecting in" }).waitFor();
    await server.restart();
    await page.locator("#link", { hasText: "Live" }).waitFor();
    await said.waitFor();
    await page.reload();
    await said.waitFor();
  });

  test("outside of a Session, too, it is no news any more that the server could not be reached once it answers", async () => {
    const server = await startOmnid({ env: { PORT: String(await freePort()) } });
    const page = await (await openWindow())(server.url);
    await page.getByText("What should be done?").waitFor();
    await server.stop("SIGKILL");
    await send(page, "nobody hears this");
    await page.getByRole("alert").getByText("cannot be reached").waitFor();
    await server.restart();
    await page.getByRole("alert").waitFor({ state: "detached" });
    expect(await page.getByLabel("Prompt", { exact: true }).inputValue()).toBe("nobody hears this");
  });

  test("without a network the page says that it is offline, and is back with it", async () => {
    const server = await startOmnid({ env: { OMNID_DEMO_DELAY_MS: "5" } });
    const page = await (await openWindow())(server.url);
    await send(page, "/think before");
    await ready(page);
    await page.context().setOffline(true);
    await server.stop("SIGKILL");
    await page.locator("#link", { hasText: "Offline" }).waitFor();
    expect(await page.locator("#activity").textContent()).toBe("Ready");
    await page.context().setOffline(false);
    await page.locator("#link", { hasText: "Reconnecting in" }).waitFor();
  });

  test("behind a proxy that has it below a path of its own, the page asks for nothing beside that path", async () => {
    const server = await startOmnid();
    const beside: string[] = [];
    const proxy = createProxy((request, response) => {
      const { url = "", method, headers } = request;
      if (!url.startsWith("/agents/")) {
        beside.push(url);
        response.writeHead(404).end();
        return;
      }
      const target = `${server.url}${url.slice("/agents".length)}`;
      const onward = sendOn(target, { method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      });
      // A page that is closed asks for no answer: giving it up before it came is an error to Node.
      onward.on("error", () => response.destroy());
      response.on("close", () => onward.destroy());
      request.pipe(onward);
    }).listen(0, "127.0.0.1");
    await once(proxy, "listening");
    onTestFinished(() => {
      proxy.closeAllConnections();
      proxy.close();
    });
    const { port } = proxy.address() as { port: number };
    const page = await (await openWindow())(`http://127.0.0.1:${port}/agents/`);
    await send(page, "/run echo through");
    await question(page).getByRole("button", { name: "Allow" }).click();
    await ready(page);
    expect(await page.locator(".tool .output").textContent()).toContain("through");
    await page.reload();
    await ready(page);
    expect(await page.locator("article.user").count()).toBe(1);
    expect(beside).toEqual([]);
  });

  test("a server with tokens is asked with one, which stays in the tab's own storage", async () => {
    const server = await startOmnid({ env: { OMNID_TOKENS: "alice:s3cret" } });
    const page = await (await openWindow())(server.url);
    await page.getByRole("textbox", { name: "Token" }).fill("wrong");
    await page.keyboard.press("Enter");
    await page.getByText("The server does not know this token").waitFor();
    await page.getByRole("textbox", { name: "Token" }).fill("s3cret");
    await page.keyboard.press("Enter");
    await send(page, "/think with a token");
    await ready(page);
    expect(await page.evaluate("[sessionStorage.length, localStorage.length, document.cookie]")).toEqual([1, 0, ""]);
    await page.reload();
    await ready(page);
    expect(await page.locator("article.user").count()).toBe(1);
    expect(server.printed()).not.toContain("s3cret");
    expect(idOf(page)).toMatch(/^session-/);
  });
});
