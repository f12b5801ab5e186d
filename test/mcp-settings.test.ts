import { describe, expect, test } from "vitest";
import { secretsOf, settingsHider } from "../src/mcp-settings.js";

describe("what is blanked everywhere", () => {
  test.each([
    ["a whole value, its spaces too", { PW: "correct horse" }, ["correct horse"]],
    ["a short one that is neither word nor number", { PIN: "s3cr3t7" }, ["s3cr3t7"]],
    [
      "a long word in a value by itself too",
      { H: "Bearer far-away-token" },
      ["Bearer far-away-token", "far-away-token"],
    ],
    ["an address that holds more than a host", { DB: "pg://u:p@db/main" }, ["pg://u:p@db/main", "pg://u:p@db/main"]],
    [
      "what only begins like a path",
      { KEY: "/9j/4AAQSkZJRgABAQEAYABgAAD/2w" },
      Array(2).fill("/9j/4AAQSkZJRgABAQEAYABgAAD/2w"),
    ],
  ])("%s", (_what, env, secrets) => {
    expect(secretsOf({ env })).toEqual(secrets);
  });

  test("no ordinary value: switches, numbers, short words, paths, hosts, and what its name tells", () => {
    const env = {
      ON: "1",
      ALSO: "true",
      YES: "yes",
      PORT: "3000",
      LEVEL: "debug",
      STAGE: "staging",
      RATIO: "0.12345",
      MODEL: "gpt-4",
      WHERE: "/usr/bin",
      HERE: "./files/of-mine",
      OURS: "~/projects",
      PROXY: "http://proxy.example:3128",
      NODE_ENV: "production",
      CACHE_DIR: "somewhere-else",
    };
    expect(secretsOf({ env })).toEqual([]);
  });

  test("headers and the query of an address are settings too", () => {
    const headers = { Authorization: "Bearer abcdefgh", Accept: "application/json" };
    expect(secretsOf({ url: "https://far.example/mcp?key=q-12345678&v=1", headers })).toEqual([
      "Bearer abcdefgh",
      "abcdefgh",
      "q-12345678",
      "q-12345678",
    ]);
  });
});

describe("what is blanked in a server's own words", () => {
  test.each([
    ["a short value", { PIN: "1234" }, "the pin is 1234.", "the pin is [redacted]."],
    [
      "a value of several words, wherever the lines break",
      { PW: "correct  horse" },
      "pw correct\nhorse",
      "pw [redacted]",
    ],
    ["one in JSON", { PW: 'a"b\\c' }, JSON.stringify({ pw: 'a"b\\c' }), '{"pw":"[redacted]"}'],
    ["one in an address", { PW: "a b&c" }, "GET /?pw=a%20b%26c", "GET /?pw=[redacted]"],
    ["the longer of two first", { A: "abcd", B: "abcdef" }, "abcdef abcd", "[redacted] [redacted]"],
    ["the end of one, where the text begins", { PW: "correct horse" }, "ct horse is no pin", "[redacted] is no pin"],
    [
      "the beginning of one, where the text ends",
      { PW: "correct horse" },
      "the pin is correct",
      "the pin is [redacted]",
    ],
    ["a path", { ROOT: "/srv/files" }, "no /srv/files", "no [redacted]"],
  ])("%s", (_what, env, said, shown) => {
    expect(settingsHider({ env })(said)).toBe(shown);
  });

  test("what is shorter than 4 characters, or no secret by its name, stays", () => {
    const hide = settingsHider({ env: { ON: "1", YES: "yes", OFF: "", PATH: "/usr/bin", DATA_DIR: "/data" } });
    expect(hide("yes, 1 of /usr/bin and /data")).toBe("yes, 1 of /usr/bin and /data");
  });
});
