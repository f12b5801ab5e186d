import { mkdir, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { systemClock } from "../../src/clock.js";
import { builtInTools } from "../../src/tools/built-in-tools.js";
import { createEnvironment } from "../../src/tools/environment.js";
import { Workspace } from "../../src/tools/workspace.js";
import { execute, temporaryFolder } from "./support.js";

/** A folder with a Workspace and, beside it, what must not be reached. */
async function setUp(allowOutside = false) {
  const base = await temporaryFolder();
  const [inside, outside] = [join(base, "ws"), join(base, "ws-other")];
  await mkdir(join(inside, "sub"), { recursive: true });
  await mkdir(join(outside, "sub"), { recursive: true });
  await writeFile(join(outside, "secret"), "the secret");
  await writeFile(join(outside, "sub", "secret"), "the secret");
  await writeFile(join(inside, "own"), "own text");
  await symlink(outside, join(inside, "out"));
  await symlink(join(outside, "secret"), join(inside, "out-file"));
  await symlink(join(outside, "new"), join(inside, "out-new"));
  await symlink("../ws-other", join(inside, "out-relative"));
  await symlink("out", join(inside, "out-twice"));
  await symlink("loop", join(inside, "loop"));
  await symlink("sub", join(inside, "in"));
  await symlink(inside, join(base, "alias"));
  const tools = builtInTools({ workspace: inside, allowOutsideWorkspace: allowOutside, environment: {} });
  return { base, inside, outside, environment: createEnvironment({ tools, clock: systemClock() }) };
}

describe("H4: file tools stay inside the Workspace", () => {
  const escapes: [string, (base: string) => string][] = [
    ["..", () => "../ws-other/secret"],
    ["a sibling whose name begins like the Workspace's", (base) => `${base}/ws-other/secret`],
    [".. after a folder", () => "sub/../../ws-other/secret"],
    [".. after a folder that is missing", () => "missing/../../ws-other/secret"],
    ["an absolute path", (base) => join(base, "ws-other", "secret")],
    ["an absolute path with .. in it", (base) => `${base}/ws/sub/../../ws-other/secret`],
    ["a system file", () => "/etc/passwd"],
    ["its own descriptors", () => "/proc/self/environ"],
    ["a link to a file", () => "out-file"],
    ["a link to a folder", () => "out/secret"],
    ["a folder below a linked one", () => "out/sub/secret"],
    ["a relative link", () => "out-relative/secret"],
    ["a link to a link", () => "out-twice/secret"],
    ["a new file below a link", () => "out/fresh/file"],
  ];
  test.each(escapes)("%s is refused by every tool, and nothing outside changes", async (_, path) => {
    const { base, outside, environment } = await setUp();
    const file_path = path(base);
    const calls: [string, Record<string, unknown>][] = [
      ["read_file", { file_path }],
      ["write_file", { file_path, content: "x" }],
      ["edit_file", { file_path, old_string: "secret", new_string: "x" }],
      ["read_image", { source: file_path }],
    ];
    for (const [tool, args] of calls) {
      const { result } = await execute(environment, tool, args);
      expect(result).toMatchObject({ stop_reason: "failed", output: expect.stringMatching(/outside the Workspace/) });
      expect(result.output).not.toContain("the secret");
    }
    expect(await readFile(join(outside, "secret"), "utf8")).toBe("the secret");
    expect((await readdir(outside)).sort()).toEqual(["secret", "sub"]);
  });

  test.each(["out-new", "loop"])(
    "a link that leads nowhere (%s) is neither read nor written through",
    async (file_path) => {
      const { outside, environment } = await setUp();
      for (const [tool, more] of [
        ["read_file", {}],
        ["write_file", { content: "x" }],
      ] as const) {
        expect((await execute(environment, tool, { file_path, ...more })).result.stop_reason).toBe("failed");
      }
      expect((await readdir(outside)).sort()).toEqual(["secret", "sub"]);
    },
  );

  test.each([
    ["relative", () => "own"],
    ["with . and .. that stay inside", () => "./sub/.././own"],
    ["absolute", (base: string) => join(base, "ws", "own")],
    ["through another name of the Workspace", (base: string) => join(base, "alias", "own")],
  ])("a path %s reaches a file inside", async (_, path) => {
    const { base, environment } = await setUp();
    expect((await execute(environment, "read_file", { file_path: path(base) })).result.output).toBe("own text");
  });

  test.each(["..own", "...", "a b", "北🙂é", "-rf", "$(x)", "a\nb", " "])(
    "%j is a name like any other",
    async (file_path) => {
      const { inside, environment } = await setUp();
      await execute(environment, "write_file", { file_path, content: file_path });
      expect((await execute(environment, "read_file", { file_path })).result.output).toBe(file_path);
      expect(await readdir(inside)).toContain(file_path);
    },
  );

  test("a link that stays inside is followed", async () => {
    const { inside, environment } = await setUp();
    await execute(environment, "write_file", { file_path: "in/file", content: "x" });
    expect(await readFile(join(inside, "sub", "file"), "utf8")).toBe("x");
  });

  test("a Workspace that is itself reached through a link works, and one that is gone is told", async () => {
    const { base, inside } = await setUp();
    const tools = builtInTools({ workspace: join(base, "alias"), allowOutsideWorkspace: false, environment: {} });
    const environment = createEnvironment({ tools, clock: systemClock() });
    expect((await execute(environment, "read_file", { file_path: "own" })).result.output).toBe("own text");
    await rm(inside, { recursive: true });
    const { result } = await execute(environment, "read_file", { file_path: "own" });
    expect(result).toMatchObject({
      stop_reason: "failed",
      output: expect.stringMatching(/^The Workspace .* does not exist/),
    });
  });

  test("with allowOutsideWorkspace the same paths are read and written", async () => {
    const { outside, environment } = await setUp(true);
    expect((await execute(environment, "read_file", { file_path: "out/secret" })).result.output).toBe("the secret");
    await execute(environment, "write_file", { file_path: "../ws-other/deep/new", content: "x" });
    expect(await readFile(join(outside, "deep", "new"), "utf8")).toBe("x");
  });
});

describe("H4: what is swapped between the check and the use", () => {
  test("a folder that becomes a link after its place was taken: the write lands in the folder that was checked", async () => {
    const { inside, outside } = await setUp();
    const place = await new Workspace(inside, false).place("sub/file");
    await rename(join(inside, "sub"), join(inside, "moved"));
    await symlink(outside, join(inside, "sub"));
    try {
      if (process.platform === "linux") await writeFile(place.path, "x");
      expect((await readdir(outside)).sort()).toEqual(["secret", "sub"]);
    } finally {
      await place.close();
    }
    if (process.platform === "linux") expect(await readdir(join(inside, "moved"))).toEqual(["file"]);
  });

  test("a race of links against reads and writes never reaches what is outside", async () => {
    const { inside, outside, environment } = await setUp();
    await writeFile(join(inside, "sub", "secret"), "own text");
    let swapping = true;
    // Between two steps a write may make the folder that is missing; then the step waits for the next round.
    const attempt = async (step: Promise<void>) => {
      await step.catch((error: NodeJS.ErrnoException) => {
        if (error.code === undefined || !["EEXIST", "ENOTEMPTY", "ENOENT", "EISDIR"].includes(error.code)) throw error;
      });
    };
    const sub = join(inside, "sub");
    const away = join(inside, "sub-away");
    const swap = (async () => {
      while (swapping) {
        await attempt(rename(sub, away));
        await attempt(symlink(outside, sub));
        // Unlinks a link and removes a folder; never follows.
        await attempt(rm(sub, { recursive: true, force: true }));
        await attempt(rename(away, sub));
      }
    })();
    try {
      for (let i = 0; i < 150; i += 1) {
        const read = await execute(environment, "read_file", { file_path: "sub/secret" });
        expect(read.result.output).not.toContain("the secret");
        await execute(environment, "write_file", { file_path: "sub/written", content: "x" });
      }
    } finally {
      swapping = false;
      await swap;
    }
    expect((await readdir(outside)).sort()).toEqual(["secret", "sub"]);
    expect(await readFile(join(outside, "secret"), "utf8")).toBe("the secret");
  });
});
