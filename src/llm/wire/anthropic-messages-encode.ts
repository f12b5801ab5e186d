// The encoder of Anthropic Messages. Whatever the context holds, what goes out keeps the protocol's rules: the user
// first, roles that take turns, results at once behind their calls and in front of everything else, no empty block.
// The same context gives the same bytes, cache marks aside: those are put on anew each time and are never stored.

import { append } from "../../append.js";
import type { LLMRequest } from "../../engine/ports.js";
import type { ToolDefinition } from "../../protocol/payloads.js";
import type { ModelSpec } from "../model-spec.js";
import {
  ANTHROPIC_NAMES,
  AnthropicCallIds,
  type AssistantOptions,
  assistantBlocks,
  endsInThinking,
  hasThinking,
  pairServerTools,
  usesServerTools,
} from "./anthropic-assistant.js";
import { type AskedThinking, anthropicFamily, askForThinking } from "./anthropic-family.js";
import { resultBlocks, textBlock, userBlock } from "./anthropic-user.js";
import { asText, isBlank, type JsonRecord, jsonBody } from "./json.js";
import { batchCallIds, isCall, outgoingTurns, type Turn } from "./outgoing.js";
import { wireToolName } from "./tool-names.js";
import { endpoint, type HttpCall } from "./wire.js";

interface Message {
  role: "user" | "assistant";
  content: JsonRecord[];
}

/** Stands where the protocol wants a user's or an assistant's words and the context has none. */
const OPENING = "[earlier messages are not shown]";
const GO_ON = "[please continue]";
const NO_ANSWER = "[no answer followed]";

const MARK = { cache_control: { type: "ephemeral" } } as const;

export function encodeAnthropic(request: LLMRequest, model: ModelSpec): HttpCall {
  const family = anthropicFamily(model);
  const max_tokens = model.maxOutputTokens ?? family.maxTokens;
  let asked = askForThinking(family, model.thinking ? request.thinkingLevel : "default", max_tokens);
  const messages = writeMessages(request, model, {
    signs: family.signs,
    withoutThinking: asked.isOff,
  });
  if (family.style.kind === "budget" && isUnthinkingLoop(messages)) asked = { fields: {}, isOff: false, betas: [] };
  const body: JsonRecord = { model: model.modelId, max_tokens, stream: true };
  if (!isBlank(request.systemPrompt)) body.system = [{ ...textBlock(request.systemPrompt), ...MARK }];
  if (request.tools.length > 0) {
    body.tools = request.tools.map((tool, n) => ({ ...toolOf(tool), ...(n === request.tools.length - 1 ? MARK : {}) }));
    body.tool_choice = { type: "auto" };
  }
  body.messages = markNewest(messages);
  return {
    url: messagesUrl(model.baseUrl),
    headers: headersOf(model, asked),
    body: jsonBody({ ...body, ...asked.fields }),
  };
}

/** A base URL may or may not have the version in it. */
function messagesUrl(baseUrl: string): string {
  const hasVersion = URL.canParse(baseUrl) && /\/v1\/*$/.test(new URL(baseUrl).pathname);
  return endpoint(baseUrl, hasVersion ? "/messages" : "/v1/messages");
}

function headersOf(model: ModelSpec, asked: AskedThinking): Record<string, string> {
  const headers: Record<string, string> = {
    "content-type": "application/json",
    accept: "text/event-stream",
    "anthropic-version": "2023-06-01",
  };
  if (asked.betas.length > 0) headers["anthropic-beta"] = asked.betas.join(",");
  if (model.apiKey === undefined) return headers;
  headers["x-api-key"] = model.apiKey;
  // Gateways are divided over which of the two they read; Anthropic itself takes a bearer for another kind of key.
  if (!isAnthropic(model.baseUrl)) headers.authorization = `Bearer ${model.apiKey}`;
  return headers;
}

function isAnthropic(baseUrl: string): boolean {
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).hostname : "";
  return host === "anthropic.com" || host.endsWith(".anthropic.com");
}

/** The API wants an object at the top, and no alternatives there. */
function toolOf({ name, description, parameters = {} }: ToolDefinition): JsonRecord {
  const { oneOf: _oneOf, anyOf: _anyOf, allOf: _allOf, ...schema } = parameters;
  return {
    name: wireToolName(name, ANTHROPIC_NAMES),
    description,
    input_schema: { properties: {}, ...schema, type: "object" },
  };
}

// --- messages ------------------------------------------------------------------------------------------------------

function writeMessages(request: LLMRequest, model: ModelSpec, options: AssistantOptions): Message[] {
  const ids = new AnthropicCallIds();
  const raw = outgoingTurns(request.messages, model).flatMap((turn) => turnMessages(turn, ids, model, options));
  const merged = merge(raw);
  const paired = merged.map((message, n) => {
    if (message.role === "user") return message;
    return { ...message, content: pairServerTools(message.content, n === merged.length - 1) };
  });
  const messages = merge(paired);
  for (const { role, content } of messages) {
    if (role === "assistant" && endsInThinking(content)) content.push(textBlock(NO_ANSWER));
  }
  if (messages[0]?.role !== "user") messages.unshift({ role: "user", content: [textBlock(OPENING)] });
  const last = messages.at(-1);
  // An answer that paused goes on from where it is; any other last word of the assistant's would be put in its mouth.
  if (last?.role !== "assistant") return messages;
  if (usesServerTools(last.content)) trimEnd(last.content);
  else messages.push({ role: "user", content: [textBlock(GO_ON)] });
  return messages;
}

function turnMessages(turn: Turn, ids: AnthropicCallIds, model: ModelSpec, options: AssistantOptions): Message[] {
  const calls = turn.assistant.filter(isCall);
  const own = batchCallIds(calls);
  const wireIds = calls.map(({ tool_call_id: id }) => ids.take(own.get(id) ?? id, id));
  let next = 0;
  const said = assistantBlocks(turn.assistant, () => wireIds[next++] as string, options);
  // One output for each call, in call order.
  const results = turn.outputs.map((output, n) =>
    resultBlocks(output, { id: wireIds[n] as string, name: calls[n]?.name ?? "the tool" }, model.vision),
  );
  const user = turn.user.map((payload) => userBlock(payload, model.vision)).filter((block) => block !== undefined);
  return [
    { role: "assistant", content: said },
    {
      role: "user",
      content: [...results.map(({ result }) => result), ...results.flatMap(({ after }) => after), ...user],
    },
  ];
}

/** The API refuses white space at the end of an answer that is to go on. */
function trimEnd(blocks: JsonRecord[]): void {
  const last = blocks.at(-1);
  if (last?.type === "text") blocks.splice(-1, 1, { ...last, text: asText(last.text).trimEnd() });
}

/** Neighbours of one role become one message; empty ones go. */
function merge(messages: readonly Message[]): Message[] {
  const merged: Message[] = [];
  for (const { role, content } of messages) {
    const last = merged.at(-1);
    if (content.length === 0) continue;
    if (last?.role === role) append(last.content, content);
    else merged.push({ role, content: [...content] });
  }
  return merged;
}

/**
 * True when outputs go back to an answer without reasoning (another model's, or from before thinking was asked for):
 * a model with a budget refuses to begin thinking there.
 */
function isUnthinkingLoop(messages: readonly Message[]): boolean {
  const [answer, outputs] = messages.slice(-2);
  if (answer?.role !== "assistant" || outputs?.content[0]?.type !== "tool_result") return false;
  return !hasThinking(answer.content);
}

/** Marks the last block of the newest user turn and of the one before: with tools and system, four marks. */
function markNewest(messages: readonly Message[]): Message[] {
  const newest = new Set(messages.filter(({ role }) => role === "user").slice(-2));
  return messages.map((message) => {
    if (!newest.has(message)) return message;
    const last = message.content.at(-1) as JsonRecord;
    return { ...message, content: [...message.content.slice(0, -1), { ...last, ...MARK }] };
  });
}
