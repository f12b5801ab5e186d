// Input that the provider refuses is dropped by and by, so that no Session is refused for ever; the model is told once.

import { describe, expect, test } from "vitest";
import { Context } from "../../src/engine/context.js";
import {
  assistantText,
  emptyTokenCounts,
  imageUrl,
  inlineData,
  requestBegin,
  requestEnd,
  tokenUsage,
  toolCall,
  toolCallOutput,
  userText,
} from "../../src/protocol/builders.js";
import { isPayload } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { AT, metaOf } from "../support/messages.js";

const error = { kind: "invalid_request", message: "no", http_status: 400 } as const;
const numbers = tokenUsage(AT, emptyTokenCounts(), emptyTokenCounts());
const refused = [requestBegin(AT), numbers, requestEnd(AT, { status: "failed", error })];
const lost = [
  requestBegin(AT),
  assistantText(AT, "half"),
  numbers,
  requestEnd(AT, { status: "timeout", error: { kind: "network", message: "reset" } }),
];
const answered = [requestBegin(AT), assistantText(AT, "ok"), numbers, requestEnd(AT, { status: "completed" })];
const IMAGE = imageUrl(AT, "data:image/png;base64,AAAA");
const FILE = inlineData(AT, { role: "user", data: "AAAA", mime_type: "application/pdf", file_name: "a.pdf" });

function said(...records: OmniMessage[]): string[] {
  const context = new Context();
  for (const record of [metaOf(), ...records]) context.push(record);
  return context.assemble().map((message) => {
    if (isPayload(message, "text")) return message.payload.text;
    return isPayload(message, "tool_call_output") ? message.payload.output : message.payload.type;
  });
}

const NOTICE = expect.stringMatching(/refused .* left out/);

describe("input that is refused", () => {
  test("once goes again without its images and files", () => {
    expect(said(userText(AT, "look"), IMAGE, FILE, ...refused)).toEqual(["look"]);
  });

  test("twice is dropped, and one notice stands for all of it, however many messages it was", () => {
    const input = [userText(AT, "one"), IMAGE, userText(AT, "two"), FILE, userText(AT, "three")];
    expect(said(...input, ...refused, ...refused)).toEqual([NOTICE]);
    expect(said(...input, ...refused, ...refused, ...refused)).toEqual([NOTICE]);
  });

  test("twice is told also where it was an image alone, or what an earlier try had come to", () => {
    expect(said(IMAGE, ...refused, ...refused)).toEqual([NOTICE]);
    expect(said(userText(AT, "one"), ...lost, ...refused, ...refused)).toEqual([NOTICE]);
  });

  test("leaves what came later as it is, and is told once more only for other input", () => {
    const first = [userText(AT, "one"), userText(AT, "two"), ...refused, ...refused];
    expect(said(...first, userText(AT, "three"))).toEqual([NOTICE, "three"]);
    expect(said(...first, userText(AT, "three"), ...answered)).toEqual([NOTICE, "three", "ok"]);
    expect(said(...first, userText(AT, "three"), ...refused, ...refused)).toEqual([NOTICE]);
    expect(said(...first, ...answered, userText(AT, "four"), ...refused, ...refused)).toEqual([NOTICE, "ok", NOTICE]);
  });

  test("keeps the outputs of calls, without their text", () => {
    const call = toolCall(AT, { name: "f", arguments: "{}", tool_call_id: "a" });
    const output = toolCallOutput(AT, { output: "secret", tool_call_id: "a", images: ["data:image/png;base64,AA"] });
    const batch = [requestBegin(AT), call, numbers, requestEnd(AT, { status: "completed" }), output];
    const prompt = userText(AT, "go");
    expect(said(prompt, ...batch, userText(AT, "steer"), ...refused, ...refused)).toEqual([
      ...["go", "tool_call", "[output withheld]"],
      NOTICE,
    ]);
  });
});
