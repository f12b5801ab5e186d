// What a configuration leaves unsaid about a model's thinking: its name tells it, or the server says that it does not know.

import { expect, test } from "vitest";
import { startOmnid } from "../support/server.js";
import { openSse } from "../support/sse-client.js";
import { startUpstream } from "../support/upstream.js";
import { at, makeSession } from "./api.js";

test("a reasoning model is asked for its encrypted reasoning though nobody said that it thinks", async () => {
  const upstream = await startUpstream();
  const unsaid = { ...upstream.config({ protocol: "openai-responses", modelId: "gpt-5" }), defaultModel: undefined };
  const server = await startOmnid({ config: unsaid });
  const id = await makeSession(server, { thinkingLevel: "high" });
  const said = { type: "message", role: "assistant", content: [{ type: "output_text", text: "ok", annotations: [] }] };
  upstream.script({ steps: [{ type: "response.completed", response: { status: "completed", output: [said] } }] });
  await (await openSse(server.url + at(id, "/tasks"), { method: "POST", body: { input: "go" } })).ended;
  expect(JSON.parse(upstream.requests[0]?.raw ?? "{}")).toMatchObject({
    ...{ include: ["reasoning.encrypted_content"], reasoning: { effort: "high", summary: "auto" } },
  });
});

test("the log names each model to which a thinking level makes no difference", async () => {
  const upstream = await startUpstream();
  const server = await startOmnid({ config: upstream.config({ protocol: "openai-responses" }) });
  await server.stop("SIGTERM");
  const line = server
    .printed()
    .split("\n")
    .find((each) => each.includes("no thinking level is sent"));
  expect(JSON.parse(line ?? "{}")).toMatchObject({ models: ["scripted/m"] });
});
