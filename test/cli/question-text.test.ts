import fc from "fast-check";
import { expect, test } from "vitest";
import { questionOf } from "../../src/cli/question-text.js";

const ESCAPE = "\u001b";
const asked = (args: unknown) => questionOf(JSON.stringify(args));

test("a second line of a command is a line of its own, not the end of a comment", () => {
  expect(asked({ cmd: "ls # list the folder\ntouch PWNED" })).toEqual({
    whole: "  cmd:\n    ls # list the folder\n    touch PWNED",
  });
});

test("the end of a long command is shown", () => {
  const cmd = `ls ${"-la ".repeat(500)}; touch PWNED`;
  expect(asked({ cmd }).whole).toBe(`  cmd: ${cmd}`);
  expect(asked({ cmd })).not.toHaveProperty("cut");
});

test("every argument is shown, also beside one that says the most", () => {
  const args = { prompt: "be nice", file_path: "a.sh", content: "#!/bin/sh\nrm -rf ~", force: true, more: { n: [1] } };
  expect(asked(args).whole.split("\n")).toEqual([
    "  prompt: be nice",
    "  file_path: a.sh",
    "  content:",
    "    #!/bin/sh",
    "    rm -rf ~",
    "  force: true",
    "  more:",
    "    {",
    '      "n": [',
    "        1",
    "      ]",
    "    }",
  ]);
});

test("arguments that are no object, or no JSON, are shown as they are", () => {
  expect(questionOf('{"cmd": "ls').whole).toBe('  {"cmd": "ls');
  expect(questionOf("[1,2]").whole).toBe("  [1,2]");
  expect(questionOf("null").whole).toBe("  null");
  expect(questionOf("{}").whole).toBe("");
  const deep = `{"a":${"[".repeat(200_000)}${"]".repeat(200_000)}}`;
  expect(questionOf(deep).cut?.head).toMatch(/^ {2}\{/);
});

test("nothing in a name or a value steers the terminal", () => {
  const evil = `${ESCAPE}[2K\r\u0007\u009b31m\u202ex\u2066\u2028\u{e0041}\t|`;
  const { whole } = asked({ [`n${evil}`]: `v${evil}`, two: `a\r\nb${evil}` });
  expect(whole.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}\u2028\u2029]/u);
  expect(whole).toContain("\\u{1b}[2K\\u{d}");
  expect(whole).toContain("\n    a\\u{d}\n    b");
});

test("a call that no screen holds shows both its ends and says how much is missing between them", () => {
  const lines = Array.from({ length: 200 }, (_, index) => `line ${index}`);
  const { cut, whole } = asked({ content: lines.join("\n") });
  expect(cut?.head).toMatch(/^ {2}content:\n {4}line 0\n[\s\S]*line 28$/);
  expect(cut?.tail).toMatch(/^ {2}… {4}line 170\n[\s\S]*line 199$/);
  expect(cut?.missing).toMatch(/^1,\d{3} of 2,\d{3} characters$/);
  expect(whole).toContain("line 100");
  const long = asked({ cmd: `${"a".repeat(9_000)}; touch PWNED` });
  expect(long.cut?.tail).toMatch(/; touch PWNED$/);
  expect(long.cut?.missing).toMatch(/^5,\d{3} of 9,\d{3} characters$/);
});

test("whatever is not said to be missing is on the screen", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.string()), (args) => {
      const { whole, cut } = asked(args);
      expect(cut).toBeUndefined();
      for (const value of Object.values(args)) {
        for (const word of value.match(/[a-zA-Z0-9;|&$`]+/g) ?? []) expect(whole).toContain(word);
      }
      for (const line of whole.split("\n")) expect(line === "" || line.startsWith("  ")).toBe(true);
    }),
  );
});
