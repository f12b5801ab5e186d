import { expect, test } from "vitest";
import { scrubEnvironment } from "../../src/tools/scrub-environment.js";

const server = {
  PATH: "/bin",
  HOME: "/home/me",
  LANG: undefined,
  OMNID_TOKENS: "alice:s3cret-of-alice, bare-secret-token,pin:7",
  OMNID_DATA_DIR: "/data",
  OPENAI_API_KEY: "sk-openai-123456",
  MY_GATEWAY_KEY: "gw-987654",
  COPY: "sk-openai-123456",
  CURL_HEADERS: "Authorization: Bearer s3cret-of-alice",
  URL: "https://u:bare-secret-token@example.com",
  LUCKY: "7",
  NUMBERS: "1 7 9",
  EMPTY: "",
};

test("settings of the server, named keys, and every value that is or holds a secret are removed; the rest stays", () => {
  const clean = scrubEnvironment(server, { names: ["OPENAI_API_KEY", "NOT_SET"], secrets: ["gw-987654", ""] });
  expect(clean).toEqual({ PATH: "/bin", HOME: "/home/me", NUMBERS: "1 7 9", EMPTY: "" });
});

test("a key of a provider that is not configured is not known to be a secret", () => {
  expect(scrubEnvironment({ ANTHROPIC_API_KEY: "x" })).toEqual({ ANTHROPIC_API_KEY: "x" });
});
