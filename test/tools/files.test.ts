import { execFileSync } from "node:child_process";
import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { execute, inWorkspace } from "./support.js";

const isRoot = process.getuid?.() === 0;

describe("read_file", () => {
  const numbered = Array.from({ length: 50 }, (_, i) => `line ${i + 1}\n`).join("");
  test.each([
    ["a whole file", "a\nb\n", {}, "a\nb\n"],
    ["a file without a last line end", "a\nb", {}, "a\nb"],
    ["CRLF as it is", "a\r\nb\r\n", {}, "a\r\nb\r\n"],
    ["U+2028 as a character, not a line end", "a\u2028b\nc\n", { offset: 2 }, "c\n"],
    [
      "some lines",
      numbered,
      { offset: 3, limit: 2 },
      "line 3\nline 4\n[lines 3 to 4; there is more: go on at offset 5]",
    ],
    ["the last lines", numbered, { offset: 49, limit: 10 }, "line 49\nline 50\n"],
    ["exactly the last lines", numbered, { offset: 49, limit: 2 }, "line 49\nline 50\n"],
    ["an empty file", "", {}, "[file is empty]"],
    ["no byte order mark", "\uFEFFa", {}, "a"],
  ])("gives %s", async (_, content, window, expected) => {
    const { environment, folder } = await inWorkspace();
    await writeFile(join(folder, "file"), content);
    const { result } = await execute(environment, "read_file", { file_path: "file", ...window });
    expect(result.output).toBe(expected);
    expect(result).not.toHaveProperty("stop_reason");
  });

  test.each([
    ["a\nb\n", 2],
    ["a\nb", 2],
  ])("an offset past the end of %j says how many lines there are", async (content, lines) => {
    const { environment, folder } = await inWorkspace();
    await writeFile(join(folder, "file"), content);
    const { result } = await execute(environment, "read_file", { file_path: "file", offset: 9 });
    expect(result).toMatchObject({ output: `file has ${lines} lines; line 9 is past its end.`, stop_reason: "failed" });
  });

  test("a big file comes in windows that join to the whole, each ending with where to go on", async () => {
    const { environment, folder } = await inWorkspace();
    const content = Array.from({ length: 9_000 }, (_, i) => `${i} 北🙂 ${"x".repeat(i % 50)}\n`).join("");
    await writeFile(join(folder, "big"), content);
    let all = "";
    for (let offset = 1; ; ) {
      const { output } = (await execute(environment, "read_file", { file_path: "big", offset })).result;
      expect(output.length).toBeLessThanOrEqual(16_000);
      expect(output).not.toContain("left out");
      const more = /\[lines \d+ to \d+; there is more: go on at offset (\d+)\]$/.exec(output);
      all += more === null ? output : output.slice(0, more.index);
      if (more === null) break;
      offset = Number(more[1]);
    }
    expect(all).toBe(content);
  });

  test("a line longer than the output is cut between characters, and the text says so", async () => {
    const { environment, folder } = await inWorkspace();
    await writeFile(join(folder, "long"), `first\n${"🙂".repeat(100_000)}\nlast\n`);
    const { result } = await execute(environment, "read_file", { file_path: "long", offset: 2 });
    expect(result.output).toMatch(
      /^(🙂)+\n\[the first \d+ characters of line 2; go on at offset 3, or cut the line with exec_command\]$/u,
    );
    expect((await execute(environment, "read_file", { file_path: "long", offset: 3 })).result.output).toBe("last\n");
  });

  test.each([
    ["a missing file", "missing", /^missing does not exist\.$/],
    ["a folder", "folder", /^folder is a folder\./],
    ["the Workspace itself", ".", /is a folder/],
    ["a file taken for a folder", "binary/x", /not a folder/],
    ["a FIFO", "fifo", /^fifo is not a regular file/],
    ["a binary file", "binary", /^binary is a binary file \(5 bytes\)/],
    ["a name that is too long", "n".repeat(300), /name that is too long/],
    ["a path that is too long", `${"n/".repeat(5_000)}x`, /10001 bytes, limit 4095/],
    ["a NUL in the path", "a\0b", /NUL/],
  ])("%s is a clear text, and nothing hangs", async (_, file_path, text) => {
    const { environment, folder } = await inWorkspace();
    await mkdir(join(folder, "folder"));
    await writeFile(join(folder, "binary"), Buffer.from([1, 0, 2, 255, 254]));
    execFileSync("mkfifo", [join(folder, "fifo")]);
    const { result } = await execute(environment, "read_file", { file_path });
    expect(result).toMatchObject({ output: expect.stringMatching(text), stop_reason: "failed" });
    expect(result.output.length).toBeLessThan(600);
  });

  test("a device is not touched, also where outside is allowed", async () => {
    const { environment } = await inWorkspace({ allowOutside: true });
    const { result } = await execute(environment, "read_file", { file_path: "/dev/zero" });
    expect(result).toMatchObject({ output: expect.stringMatching(/not a regular file/), stop_reason: "failed" });
  });
});

describe("write_file", () => {
  test("makes missing folders and says what it did", async () => {
    const { environment, folder } = await inWorkspace();
    const path = "a/b c/北/file.txt";
    const first = await execute(environment, "write_file", { file_path: path, content: "é\n" });
    expect(first.result.output).toBe(`created ${path} (3 bytes)`);
    const second = await execute(environment, "write_file", { file_path: join(folder, path), content: "" });
    expect(second.result.output).toBe(`replaced ${path} (0 bytes)`);
    expect(await readFile(join(folder, path), "utf8")).toBe("");
    expect(await readdir(join(folder, "a/b c/北"))).toEqual(["file.txt"]);
  });

  test("keeps the permissions of the file that was there, and the link that led to it", async () => {
    const { environment, folder } = await inWorkspace();
    await writeFile(join(folder, "script"), "old");
    await chmod(join(folder, "script"), 0o750);
    await symlink("script", join(folder, "link"));
    await execute(environment, "write_file", { file_path: "link", content: "new" });
    expect(await readFile(join(folder, "script"), "utf8")).toBe("new");
    expect((await stat(join(folder, "script"))).mode & 0o777).toBe(0o750);
    expect((await readdir(folder)).sort()).toEqual(["link", "script"]);
  });

  test.each([
    ["a folder", "folder"],
    ["the Workspace", "."],
    ["a file in a file", "file/x"],
    ["a FIFO", "fifo"],
    ["a name that is too long", "n".repeat(300)],
    ["a link that leads nowhere", "dangling"],
  ])("%s is refused and nothing is left behind", async (_, file_path) => {
    const { environment, folder } = await inWorkspace();
    await mkdir(join(folder, "folder"));
    await writeFile(join(folder, "file"), "old");
    await symlink("nowhere", join(folder, "dangling"));
    execFileSync("mkfifo", [join(folder, "fifo")]);
    const before = (await readdir(folder)).sort();
    const { result } = await execute(environment, "write_file", { file_path, content: "x" });
    expect(result.stop_reason).toBe("failed");
    expect((await readdir(folder)).sort()).toEqual(before);
    expect(await readFile(join(folder, "file"), "utf8")).toBe("old");
  });

  test.skipIf(isRoot)(
    "a file that may not be written is not replaced behind its owner's back (root may write every file: not tried as root)",
    async () => {
      const { environment, folder } = await inWorkspace();
      await writeFile(join(folder, "file"), "old", { mode: 0o444 });
      const { result } = await execute(environment, "write_file", { file_path: "file", content: "x" });
      expect(result).toMatchObject({ output: expect.stringMatching(/permission/), stop_reason: "failed" });
    },
  );

  test("a name of the greatest length can be written", async () => {
    const { environment, folder } = await inWorkspace();
    const name = "n".repeat(255);
    await execute(environment, "write_file", { file_path: name, content: "x" });
    expect(await readdir(folder)).toEqual([name]);
  });
});

describe("edit_file", () => {
  const edit = async (content: string | Buffer, args: Record<string, unknown>) => {
    const { environment, folder } = await inWorkspace();
    await writeFile(join(folder, "file"), content);
    const { result } = await execute(environment, "edit_file", { file_path: "file", ...args });
    return { result, after: await readFile(join(folder, "file"), "utf8") };
  };

  test.each([
    ["the one occurrence", "a\nb\nc\n", { old_string: "b", new_string: "x" }, "a\nx\nc\n"],
    ["several lines by fewer", "a\nb\nc\n", { old_string: "a\nb", new_string: "x" }, "x\nc\n"],
    ["by nothing", "abc", { old_string: "b", new_string: "" }, "ac"],
    ["every occurrence", "a a a", { old_string: "a", new_string: "aa", replace_all: true }, "aa aa aa"],
    ["what looks like a pattern", "a.c abc $1", { old_string: "a.c", new_string: "$& $1 $'" }, "$& $1 $' abc $1"],
    [
      "in a CRLF file, lines written with LF",
      "a\r\nb\r\nc\r\n",
      { old_string: "a\nb", new_string: "x\ny" },
      "x\r\ny\r\nc\r\n",
    ],
    ["in a CRLF file, one line by two", "a\r\nb\r\n", { old_string: "a", new_string: "x\ny" }, "x\r\ny\r\nb\r\n"],
    [
      "in a CRLF file, lines written with CRLF",
      "a\r\nb\r\n",
      { old_string: "a\r\nb", new_string: "c\r\nd" },
      "c\r\nd\r\n",
    ],
    [
      "in a file of both line ends, as written",
      "a\r\nb\nc\n",
      { old_string: "b\nc", new_string: "x\ny" },
      "a\r\nx\ny\n",
    ],
    [
      "in a file of both line ends, where it is CRLF",
      "a\r\nb\r\nc\n",
      { old_string: "a\nb", new_string: "x\ny" },
      "x\r\ny\r\nc\n",
    ],
    ["and keeps a byte order mark", "\uFEFFa", { old_string: "a", new_string: "b" }, "\uFEFFb"],
    ["and characters beyond the BMP", "北🙂é", { old_string: "🙂", new_string: "🙃" }, "北🙃é"],
  ])("replaces %s", async (_, content, args, expected) => {
    const { result, after } = await edit(content, args);
    expect(result).not.toHaveProperty("stop_reason");
    expect(result.output).toMatch(/^edited file: /);
    expect(after).toBe(expected);
  });

  test("refuses a replacement that would hold the process or make a file beyond the limit", async () => {
    const many = await edit("a".repeat(200_000), { old_string: "a", new_string: "b", replace_all: true });
    expect(many.result).toMatchObject({
      stop_reason: "failed",
      output: expect.stringMatching(/more than 100000 times/),
    });
    const large = await edit("a".repeat(9_000), { old_string: "a", new_string: "b".repeat(2_000), replace_all: true });
    expect(large.result).toMatchObject({ stop_reason: "failed", output: expect.stringMatching(/limit/) });
    expect(large.after).toBe("a".repeat(9_000));
  });

  test.each([
    [
      "what does not occur",
      "a\n",
      { old_string: "z", new_string: "x" },
      /does not occur in file\. Read the file again/,
    ],
    [
      "other white space",
      "one\n\tif (a)\n",
      { old_string: "  if (a)", new_string: "x" },
      /does not occur.*Line 2 is like/s,
    ],
    [
      "what occurs twice",
      "a\nb\na\n",
      { old_string: "a", new_string: "x" },
      /more than once in file \(from lines 1, 3\)/,
    ],
    ["what overlaps itself", "aaa", { old_string: "aa", new_string: "x" }, /more than once/],
    ["nothing", "a", { old_string: "", new_string: "x" }, /old_string/],
    ["a change that is none", "a", { old_string: "a", new_string: "a" }, /the same/],
  ])("refuses %s and leaves the file", async (_, content, args, text) => {
    const { result, after } = await edit(content, args);
    expect(result).toMatchObject({ output: expect.stringMatching(text), stop_reason: "failed" });
    expect(after).toBe(content);
  });

  test("a file that is not UTF-8 is left alone, since what is not replaced could not be kept", async () => {
    const { result } = await edit(Buffer.from([0x61, 0xe9, 0x62]), { old_string: "a", new_string: "x" });
    expect(result).toMatchObject({ output: expect.stringMatching(/not UTF-8/), stop_reason: "failed" });
  });

  test("edits of one file that are made at once are all kept", async () => {
    const { environment, folder } = await inWorkspace();
    const names = Array.from({ length: 20 }, (_, i) => `<${i}>`);
    await writeFile(join(folder, "file"), names.join("\n"));
    await symlink("file", join(folder, "link"));
    await Promise.all(
      names.map((name, i) =>
        execute(environment, "edit_file", {
          file_path: i % 2 === 0 ? "file" : "link",
          old_string: name,
          new_string: `done ${i}`,
        }),
      ),
    );
    expect(await readFile(join(folder, "file"), "utf8")).toBe(names.map((_, i) => `done ${i}`).join("\n"));
  });
});

describe("read_image", () => {
  const pad = (head: string) => Buffer.concat([Buffer.from(head, "latin1"), Buffer.alloc(40)]);
  test.each([
    ["image/png", "\x89PNG\r\n\x1a\n"],
    ["image/jpeg", "\xff\xd8\xff\xe0"],
    ["image/gif", "GIF89a"],
    ["image/webp", "RIFF\x10\0\0\0WEBPVP8 "],
    ["image/bmp", "BM"],
  ])("%s is known by its first bytes, whatever its name", async (type, head) => {
    const { environment, folder } = await inWorkspace();
    const bytes = pad(head);
    await writeFile(join(folder, "picture.txt"), bytes);
    const { result } = await execute(environment, "read_image", { source: "picture.txt" });
    expect(result).toMatchObject({
      output: `picture.txt (${type}, ${bytes.length} bytes)`,
      images: [`data:${type};base64,${bytes.toString("base64")}`],
    });
  });

  test.each([
    ["a text", "text.png", /not a PNG, JPEG/],
    ["an image beyond the limit", "big.png", /limit 3932160/],
    ["a URL", "https://example.com/a.png", /not fetched/],
    ["a data URL", "data:image/png;base64,AA==", /not fetched/],
    ["a missing file", "missing.png", /does not exist/],
    ["a file outside", "../a.png", /outside the Workspace/],
  ])("%s is refused with a clear text", async (_, source, text) => {
    const { environment, folder } = await inWorkspace();
    await writeFile(join(folder, "text.png"), "hello");
    await writeFile(join(folder, "big.png"), Buffer.concat([pad("\x89PNG\r\n\x1a\n"), Buffer.alloc(3_932_160)]));
    const { result } = await execute(environment, "read_image", { source });
    expect(result).toMatchObject({ output: expect.stringMatching(text), stop_reason: "failed" });
    expect(result).not.toHaveProperty("images");
  });
});
