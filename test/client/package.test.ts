// `omnid/client` as others get it: its types resolve for a program that has nothing else of ours, and its bundle for a
// browser holds the client and its parser, and nothing of the server.

import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "vite";
import { beforeAll, expect, test } from "vitest";
import { atFileEnd } from "../support/at-file-end.js";
import { temporaryFolder } from "../support/server.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const TSC = join(ROOT, "node_modules", "typescript", "bin", "tsc");

const tsc = (cwd: string, ...args: string[]): Promise<string> =>
  promisify(execFile)(process.execPath, [TSC, ...args], { cwd }).then(
    ({ stdout }) => stdout,
    ({ stdout, stderr }: { stdout: string; stderr: string }) => stdout + stderr,
  );

const CONSUMER = `
import { createClient, emptyView, isPayload, OmnidError, reduceView, type View } from "omnid/client";

const client = createClient({ baseUrl: "", token: () => sessionStorage.getItem("token") ?? undefined, fetch });

export async function show(id: string, render: (view: View) => void): Promise<string> {
  const session = client.session(id);
  const following = session.follow({ pageSize: 100 });
  following.subscribe(() => render(following.view));
  const { taskId } = await session.submit({ input: [{ type: "text", text: "hi" }], whenBusy: "queue" });
  for await (const step of following) {
    if (step.type === "message" && isPayload(step.message, "text")) console.log(step.message.payload.text.length);
    if (step.type === "server_event" && step.event.type === "resync_required") console.log(step.event.reason);
    for (const approval of step.view.approvals) await client.decide(approval, { decision: "deny", reason: "no" });
    if (step.view.task?.ended?.taskId === taskId) break;
  }
  const { messages } = await session.messages({ limit: 10 });
  return messages.map(({ ordinal, payload }) => \`\${ordinal.toFixed()} \${JSON.stringify(payload)}\`).join();
}

export const fold = (view: View = emptyView("s")): View => reduceView(view, { type: "connected" });

export async function mode(id: string): Promise<"always-ask" | "read-only" | "allow-all" | undefined> {
  try {
    return (await client.session(id).update({ approvalMode: "read-only" })).approvalMode;
  } catch (error) {
    if (error instanceof OmnidError && error.code === "session_not_found") return undefined;
    throw error;
  }
}

// @ts-expect-error a mode that there is not
void client.sessions.create({ approvalMode: "never-ask" });
// @ts-expect-error a view is not to be changed
emptyView("s").messages.push({});
`;

/** The package as it is installed: what the client's build needs of it, and its dependencies. */
async function install(): Promise<string> {
  const folder = temporaryFolder(atFileEnd);
  const packages = join(folder, "node_modules");
  const own = join(packages, "omnid");
  mkdirSync(own, { recursive: true });
  for (const name of readdirSync(join(ROOT, "node_modules"))) {
    if (name !== "omnid" && !name.startsWith(".")) symlinkSync(join(ROOT, "node_modules", name), join(packages, name));
  }
  cpSync(join(ROOT, "package.json"), join(own, "package.json"));
  const config = {
    extends: join(ROOT, "tsconfig.build.json"),
    compilerOptions: { rootDir: ROOT, outDir: join(own, "dist"), emitDeclarationOnly: true, sourceMap: false },
    include: [join(ROOT, "src/client/*.ts")],
  };
  writeFileSync(join(folder, "tsconfig.build.json"), JSON.stringify(config));
  expect(await tsc(folder, "-p", "tsconfig.build.json")).toBe("");
  return folder;
}

let folder: string;
beforeAll(async () => {
  folder = await install();
}, 120_000);

test.each([
  [
    "a browser",
    { lib: ["ES2022", "DOM", "DOM.Iterable"], types: [], moduleResolution: "bundler", module: "ESNext" },
    {},
  ],
  [
    "Node",
    { lib: ["ES2023"], types: ["node"], moduleResolution: "NodeNext", module: "NodeNext" },
    { skipLibCheck: true },
  ],
])(
  "the types of the built package resolve for a program of %s, however strict",
  async (_, platform, libCheck) => {
    const isNode = platform.types.length > 0;
    const source = isNode ? CONSUMER.replace('sessionStorage.getItem("token")', "process.env.TOKEN") : CONSUMER;
    const program = mkdtempSync(join(folder, "program-"));
    writeFileSync(join(program, "consumer.mts"), source);
    const strictest = { strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true };
    const compilerOptions = { ...platform, ...strictest, ...libCheck, target: "ES2022", noEmit: true };
    writeFileSync(join(program, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.mts"] }));
    expect(await tsc(program, "-p", ".")).toBe("");
  },
  60_000,
);

test("a bundle for the browser holds the client, the guards, what fragments add, results and the parser of events, and nothing else", async () => {
  const result = await build({
    root: ROOT,
    configFile: false,
    logLevel: "silent",
    build: { write: false, minify: true, lib: { entry: "src/client/index.ts", formats: ["es"] } },
  });
  const [bundle] = [result].flat() as { output: { code: string; imports: string[]; moduleIds: string[] }[] }[];
  const [chunk] = bundle?.output ?? [];
  expect(chunk?.imports).toEqual([]);
  const folders = new Set(chunk?.moduleIds.map((id) => relative(ROOT, id).replace(/[^/]+$/, "")));
  expect([...folders].sort()).toEqual([
    "node_modules/eventsource-parser/dist/",
    "src/",
    "src/client/",
    "src/protocol/",
  ]);
  expect(
    chunk?.moduleIds
      .map((id) => relative(ROOT, id))
      .filter((path) => /^src\/(?!client\/)/.test(path))
      .sort(),
  ).toEqual(["src/protocol/guards.ts", "src/protocol/partial-content.ts", "src/result.ts"]);
  expect(chunk?.code.length).toBeLessThan(44_000);
});
