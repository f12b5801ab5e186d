// The Responses protocol's rules for `input`, written down apart from the encoder that has to keep them.

import { expect } from "vitest";

export type Item = Record<string, unknown>;

const ITEM_TYPES = ["message", "reasoning", "function_call", "function_call_output", "web_search_call"];

/** Fails on the first rule that a list of input items breaks. */
export function expectRules(input: readonly Item[]): void {
  for (const item of input) {
    expect(ITEM_TYPES).toContain(item.type);
    if (item.type === "message") expectMessage(item);
    if (item.type === "reasoning") expectReasoning(item);
    if (item.type === "function_call") expectCall(item);
    if (item.type === "function_call_output") expectOutput(item);
  }
  expectPairs(input);
  expectFollowers(input);
  expect(JSON.stringify(input)).not.toMatch(/(?<!\\)(?:\\\\)*\\ud[89a-f]/);
}

function expectMessage({ role, content, phase }: Item): void {
  expect(["user", "assistant"]).toContain(role);
  expect(["commentary", "final_answer", undefined]).toContain(phase);
  if (phase !== undefined) expect(role).toBe("assistant");
  expectParts(content, role === "user" ? ["input_text", "input_image", "input_file"] : ["output_text"]);
}

function expectParts(content: unknown, types: readonly string[]): void {
  const parts = content as Item[];
  expect(parts.length).toBeGreaterThan(0);
  for (const { type, text, image_url, file_data } of parts) {
    expect(types).toContain(type);
    if (type === "input_text" || type === "output_text") expect((text as string).trim()).not.toBe("");
    if (type === "input_image") expect(image_url).toMatch(/^(data:image\/|https?:)/);
    if (type === "input_file") expect(file_data).toMatch(/^data:application\/pdf;base64,/);
  }
}

/** Stateless: what cannot be read from the item itself would be looked for by its id, and not be found. */
function expectReasoning({ encrypted_content, signature, summary }: Item): void {
  expect(encrypted_content ?? signature).toMatch(/./);
  for (const part of summary as Item[]) expect(part.type).toBe("summary_text");
}

function expectCall({ call_id, name, arguments: args }: Item): void {
  expect(call_id).toMatch(/^.{1,64}$/);
  expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
  expect(JSON.parse(args as string)).toBeTypeOf("object");
}

function expectOutput({ output }: Item): void {
  if (typeof output === "string") expect(output).not.toBe("");
  else expectParts(output, ["input_text", "input_image"]);
}

/** Each id names one call and one output; the outputs of a batch come in one run, in its order, before anything else. */
function expectPairs(input: readonly Item[]): void {
  const ids = new Set<unknown>();
  let due: unknown[] = [];
  let isAnswered = false;
  for (const { type, role, call_id } of input) {
    if (type === "function_call_output") {
      expect(call_id).toBe(due.shift());
      isAnswered = due.length > 0;
      continue;
    }
    if (isAnswered || role === "user") expect(due).toEqual([]);
    if (type !== "function_call") continue;
    expect(ids.has(call_id)).toBe(false);
    ids.add(call_id);
    due = [...due, call_id];
  }
  expect(due).toEqual([]);
}

/** Reasoning is sent with what it led to: never last, never before what somebody else said. */
function expectFollowers(input: readonly Item[]): void {
  input.forEach(({ type }, n) => {
    if (type !== "reasoning") return;
    const next = input[n + 1];
    expect(next).toBeDefined();
    expect(next?.type === "function_call_output" || next?.role === "user").toBe(false);
  });
}
