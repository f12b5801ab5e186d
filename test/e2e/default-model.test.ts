import { expect, test } from "vitest";
import { startOmnid } from "../support/server.js";
import { api, at, makeSession } from "./api.js";

test("a default model without its key takes no prompt, and nobody else gets it: the answer and the log say which key", async () => {
  const model = { provider: "local", modelId: "m", protocol: "openai-chat", apiKeyEnv: "MISSING_KEY" };
  const server = await startOmnid({ config: { models: [model] } });
  const id = await makeSession(server);
  const answer = await api(server, "POST", `${at(id)}/tasks`, { input: "hello" });
  expect([answer.status, answer.body.error.code]).toEqual([409, "model_unavailable"]);
  expect(answer.body.error.message).toContain("local/m cannot be used: MISSING_KEY is not set");
  const warnings = server.printed().match(/^.*a model cannot be used.*$/gm) ?? [];
  expect(warnings.map((line) => JSON.parse(line))).toMatchObject([
    { level: 40, model: "local/m", msg: "a model cannot be used: MISSING_KEY is not set" },
  ]);
});
