// A provider that took something once and refuses it later: the Session finds its way back by itself.

import { expect, test } from "vitest";
import { Context } from "../../src/engine/context.js";
import {
  abort,
  assistantText,
  imageUrl,
  inlineData,
  requestBegin,
  requestEnd,
  toolCall,
  toolCallOutput,
  userText,
} from "../../src/protocol/builders.js";
import type { OmniMessage } from "../../src/protocol/message.js";

const AT = "2026-01-02T03:04:05.000Z";

const request = (...said: OmniMessage[]) => [requestBegin(AT), ...said, requestEnd(AT, { status: "completed" })];
const refused = (kind: "invalid_request" | "content_filter" = "invalid_request") => [
  requestBegin(AT),
  requestEnd(AT, { status: "failed", error: { kind, message: "no" } }),
];

/** A conversation with an image, a file, a tool's image and provider data, all of it committed. */
const HISTORY: OmniMessage[] = [
  userText(AT, "look"),
  imageUrl(AT, "https://gone.example/a.png"),
  inlineData(AT, { role: "user", data: "QUJD", mime_type: "application/pdf", file_name: "a.pdf" }),
  ...request(toolCall(AT, { name: "read_image", arguments: "{}", tool_call_id: "c", fidelity: { from: "p/m", x: 1 } })),
  toolCallOutput(AT, { output: "[image]", tool_call_id: "c", images: ["data:image/heic;base64,QUJD"] }),
  ...request(assistantText(AT, "seen", { fidelity: { from: "p/m", signature: "s" } })),
];

function contextOf(...records: OmniMessage[]): Context {
  const context = new Context();
  for (const record of [...HISTORY, ...records]) context.push(record);
  return context;
}

const sent = (context: Context) => JSON.stringify(context.assemble());
const HAS_MEDIA = /gone\.example|QUJD/;

test("one refusal is the input's: earlier turns keep their images and files", () => {
  expect(sent(contextOf(userText(AT, "more"), ...refused()))).toMatch(HAS_MEDIA);
});

test("two in a row: images and files of earlier turns give way to a note, calls stay paired, provider data stays", () => {
  const context = contextOf(userText(AT, "more"), ...refused(), userText(AT, "again"), ...refused());
  expect(sent(context)).not.toMatch(HAS_MEDIA);
  expect(sent(context)).toContain('"signature":"s"');
  expect(context.assemble().map(({ payload }) => payload.type)).toEqual([
    ...["text", "text", "text", "tool_call", "tool_call_output", "text"],
    ...["text", "text"],
  ]);
});

test("three in a row: provider data goes too", () => {
  const context = contextOf(...[1, 2, 3].flatMap((n) => [userText(AT, `${n}`), ...refused()]));
  expect(sent(context)).not.toContain("fidelity");
  expect(sent(context)).toContain('"seen"');
});

test("a committed Request in between begins the count anew, and what was left out stays out", () => {
  const fine = contextOf(
    userText(AT, "1"),
    ...refused(),
    ...request(assistantText(AT, "ok")),
    userText(AT, "2"),
    ...refused(),
  );
  expect(sent(fine)).toMatch(HAS_MEDIA);
  const out = contextOf(
    ...[1, 2].flatMap((n) => [userText(AT, `${n}`), ...refused()]),
    ...request(assistantText(AT, "ok")),
  );
  expect(sent(out)).not.toMatch(HAS_MEDIA);
});

test("a filter's refusals weigh half, an abort and other failures nothing", () => {
  const twice = [1, 2].flatMap((n) => [userText(AT, `${n}`), ...refused("content_filter"), abort(AT, "user")]);
  expect(sent(contextOf(...twice))).toMatch(HAS_MEDIA);
  expect(sent(contextOf(...twice, ...refused("content_filter"), ...refused("content_filter")))).not.toMatch(HAS_MEDIA);
});
