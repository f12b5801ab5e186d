// The encoder of the chat protocol. Given the same context it writes the same bytes, and a longer context begins with
// the bytes of the shorter one, so that a provider's prefix cache holds.

import { createHash } from "node:crypto";
import type { LLMRequest } from "../../engine/ports.js";
import type { ThinkingPayload, ToolCallOutputPayload, ToolCallPayload } from "../../protocol/payloads.js";
import type { ModelSpec } from "../model-spec.js";
import { utf8Text } from "./attachments.js";
import { asList, asText, isBlank, type JsonRecord, jsonBody, safeArguments } from "./json.js";
import { CHAT_NAMES } from "./openai-chat-calls.js";
import { askedThinking, type ChatDialect, chatDialect } from "./openai-chat-dialect.js";
import { CONTENT_FIELD, PLAIN_FIELDS } from "./openai-chat-reasoning.js";
import { type AssistantPayload, batchCallIds, isCall, outgoingTurns, type Turn, type UserPayload } from "./outgoing.js";
import { wireToolName } from "./tool-names.js";
import { endpoint, type HttpCall } from "./wire.js";

type Part = { type: "text"; text: string } | { type: "image_url"; image_url: { url: string } };

export function encodeChat(request: LLMRequest, model: ModelSpec): HttpCall {
  const dialect = chatDialect(model);
  const headers: Record<string, string> = { "content-type": "application/json", accept: "text/event-stream" };
  if (model.apiKey !== undefined) {
    headers[dialect.keyHeader] = dialect.keyHeader === "authorization" ? `Bearer ${model.apiKey}` : model.apiKey;
  }
  return {
    url: endpoint(model.baseUrl, "/chat/completions"),
    headers,
    body: jsonBody(requestBody(request, model, dialect)),
  };
}

function requestBody(request: LLMRequest, model: ModelSpec, dialect: ChatDialect): JsonRecord {
  const body: JsonRecord = { model: model.modelId, stream: true };
  if (dialect.streamOptions) body.stream_options = { include_usage: true };
  if (model.maxOutputTokens !== undefined) body[dialect.maxTokensField] = model.maxOutputTokens;
  if (model.thinking && request.thinkingLevel !== "default") {
    Object.assign(body, askedThinking(dialect, request.thinkingLevel, model.modelId, request.tools.length > 0));
  }
  if (dialect.promptCacheKey) body.prompt_cache_key = request.sessionId;
  if (request.tools.length > 0) {
    body.tools = request.tools.map(({ name, description, parameters }) => ({
      type: "function",
      function: {
        name: wireToolName(name, CHAT_NAMES),
        description,
        parameters: parameters ?? { type: "object", properties: {} },
      },
    }));
  }
  body.messages = new ChatMessages(model, dialect).write(request);
  return body;
}

/** Writes the `messages` of one Request. */
class ChatMessages {
  readonly #model: ModelSpec;
  readonly #dialect: ChatDialect;
  readonly #wireIds = new Map<string, string>();
  readonly #idsTaken = new Set<string>();
  readonly #messages: JsonRecord[] = [];

  constructor(model: ModelSpec, dialect: ChatDialect) {
    this.#model = model;
    this.#dialect = dialect;
  }

  write(request: LLMRequest): JsonRecord[] {
    if (!isBlank(request.systemPrompt)) this.#messages.push({ role: "system", content: request.systemPrompt });
    for (const turn of outgoingTurns(request.messages, this.#model)) this.#turn(turn);
    return this.#messages;
  }

  #turn(turn: Turn): void {
    const calls = turn.assistant.filter(isCall);
    const ids = batchCallIds(calls);
    const wireId = (id: string): string => this.#wireId(ids.get(id) ?? id);
    const said = this.#assistant(turn.assistant, calls, wireId);
    if (said !== undefined) this.#messages.push(said);
    for (const output of turn.outputs) {
      this.#messages.push({
        role: "tool",
        tool_call_id: wireId(output.tool_call_id),
        content: this.#outputText(output),
      });
    }
    this.#toolImages(turn.outputs, calls);
    this.#user(turn.user);
  }

  #assistant(
    said: readonly AssistantPayload[],
    calls: readonly ToolCallPayload[],
    wireId: (id: string) => string,
  ): JsonRecord | undefined {
    const text = said.map((payload) => (payload.type === "text" ? payload.text : "")).join("");
    // Many servers refuse a message of reasoning alone.
    if (text === "" && calls.length === 0) return undefined;
    const reasoning = this.#reasoning(said.filter((payload) => payload.type === "thinking"));
    const message: JsonRecord = { role: "assistant", content: text === "" ? null : text, ...reasoning.fields };
    if (reasoning.parts.length > 0) {
      message.content = text === "" ? reasoning.parts : [...reasoning.parts, { type: "text", text }];
    }
    if (calls.length > 0) message.tool_calls = calls.map((call) => this.#call(call, wireId));
    if (this.#dialect.needsReasoningContent && this.#model.thinking && calls.length > 0)
      message.reasoning_content ??= "";
    return message;
  }

  /** Reasoning goes back to where it came from and to nobody else: others refuse the field or the signature in it. */
  #reasoning(thoughts: readonly ThinkingPayload[]): { fields: JsonRecord; parts: JsonRecord[] } {
    const fields: JsonRecord = {};
    const parts: JsonRecord[] = [];
    for (const { thinking, fidelity } of thoughts) {
      if (fidelity === undefined) continue;
      const field = asText(fidelity.reasoning_field);
      if (field === CONTENT_FIELD) parts.push({ type: "thinking", thinking: [{ type: "text", text: thinking }] });
      else if (PLAIN_FIELDS.some((plain) => plain === field)) fields[field] = asText(fields[field]) + thinking;
      const details = asList(fidelity.reasoning_details);
      if (details.length > 0) fields.reasoning_details = [...asList(fields.reasoning_details), ...details];
    }
    return { fields, parts };
  }

  #call(call: ToolCallPayload, wireId: (id: string) => string): JsonRecord {
    const encoded: JsonRecord = {
      id: wireId(call.tool_call_id),
      type: "function",
      function: { name: wireToolName(call.name, CHAT_NAMES), arguments: safeArguments(call.arguments) },
    };
    const extra = call.fidelity?.extra_content;
    if (extra !== undefined) encoded.extra_content = extra;
    return encoded;
  }

  #outputText(output: ToolCallOutputPayload): string {
    const images = output.images?.length ?? 0;
    if (images === 0 || this.#model.vision) return output.output;
    return `${output.output}\n[${images} image${images === 1 ? "" : "s"} left out: this model takes none]`.trimStart();
  }

  /** The protocol's tool messages hold text only, and nothing may stand between them. */
  #toolImages(outputs: readonly ToolCallOutputPayload[], calls: readonly ToolCallPayload[]): void {
    if (!this.#model.vision) return;
    const parts: Part[] = [];
    for (const { images, tool_call_id } of outputs) {
      if (images === undefined || images.length === 0) continue;
      const name = calls.find((call) => call.tool_call_id === tool_call_id)?.name ?? "tool";
      parts.push({ type: "text", text: `[${images.length === 1 ? "image" : "images"} from ${name}]` });
      for (const url of images) parts.push({ type: "image_url", image_url: { url } });
    }
    if (parts.length > 0) this.#pushUser(parts);
  }

  /** Texts stay messages of their own; beside an image or a file they become parts of one. */
  #user(said: readonly UserPayload[]): void {
    const parts = said
      .map((payload) => this.#part(payload))
      .filter((part) => part.type !== "text" || !isBlank(part.text));
    if (parts.length === 0) return;
    const messages = said.every((payload) => payload.type === "text") ? parts.map((part) => [part]) : [parts];
    for (const message of messages) this.#pushUser(message);
  }

  #pushUser(parts: readonly Part[]): void {
    const last = this.#messages.at(-1);
    if (this.#dialect.mergeUsers && last?.role === "user") {
      const before = typeof last.content === "string" ? [{ type: "text", text: last.content }] : asList(last.content);
      last.content = [...before, ...parts];
      return;
    }
    const only = parts.length === 1 ? parts[0] : undefined;
    this.#messages.push({ role: "user", content: only?.type === "text" ? only.text : parts });
  }

  #part(payload: UserPayload): Part {
    if (payload.type === "text") return { type: "text", text: payload.text };
    if (payload.type === "image_url") return this.#image(payload.image_url);
    const name = payload.file_name ?? "file";
    if (payload.mime_type.startsWith("image/")) return this.#image(`data:${payload.mime_type};base64,${payload.data}`);
    const text = utf8Text(payload.data);
    if (text === undefined) return { type: "text", text: `[${name} (${payload.mime_type}) left out: not a text file]` };
    return { type: "text", text: `[file ${name}]\n${text}\n[end of ${name}]` };
  }

  #image(url: string): Part {
    if (this.#model.vision) return { type: "image_url", image_url: { url } };
    return { type: "text", text: "[an image left out: this model takes none]" };
  }

  /** One id that the server takes for each id, the same in every Request of a context. */
  #wireId(id: string): string {
    const known = this.#wireIds.get(id);
    if (known !== undefined) return known;
    const { fits, hashed } = this.#dialect.shortCallIds ? NINE_CHARS : ANY_ID;
    let wireId = fits.test(id) ? id : hashed(id, 0);
    for (let salt = 1; this.#idsTaken.has(wireId); salt++) wireId = hashed(id, salt);
    this.#wireIds.set(id, wireId);
    this.#idsTaken.add(wireId);
    return wireId;
  }
}

interface IdRules {
  fits: RegExp;
  hashed(id: string, salt: number): string;
}

const digest = (id: string, salt: number): string => createHash("sha256").update(`${salt}:${id}`).digest("hex");

const NINE_CHARS: IdRules = { fits: /^[A-Za-z0-9]{9}$/, hashed: (id, salt) => digest(id, salt).slice(0, 9) };
/** OpenAI refuses ids of more than 40 characters; other servers make longer ones themselves and take shorter ones. */
const ANY_ID: IdRules = { fits: /^.{0,40}$/s, hashed: (id, salt) => `call_${digest(id, salt).slice(0, 32)}` };
