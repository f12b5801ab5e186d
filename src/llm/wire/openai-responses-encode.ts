// The encoder of the Responses protocol. Nothing is stored at the provider: the whole context goes out each time, and
// what the provider wants back (encrypted reasoning, phases) stands where it came. Given the same context it writes the
// same bytes, and a longer context begins with the bytes of the shorter one, so that the prefix cache holds.

import type { LLMRequest } from "../../engine/ports.js";
import type { ModelSpec } from "../model-spec.js";
import { isBlank, type JsonRecord, jsonBody } from "./json.js";
import { effortOf } from "./openai-effort.js";
import { type ResponsesDialect, responsesDialect } from "./responses-dialect.js";
import { inputItems } from "./responses-input.js";
import { RESPONSES_NAMES } from "./responses-names.js";
import { wireToolName } from "./tool-names.js";
import { endpoint, type HttpCall } from "./wire.js";

export function encodeResponses(request: LLMRequest, model: ModelSpec): HttpCall {
  const dialect = responsesDialect(model);
  const headers: Record<string, string> = { "content-type": "application/json", accept: "text/event-stream" };
  if (model.apiKey !== undefined) {
    headers[dialect.keyHeader] = dialect.keyHeader === "authorization" ? `Bearer ${model.apiKey}` : model.apiKey;
  }
  return {
    url: endpoint(model.baseUrl, "/responses"),
    headers,
    body: jsonBody(requestBody(request, model, dialect)),
  };
}

function requestBody(request: LLMRequest, model: ModelSpec, dialect: ResponsesDialect): JsonRecord {
  const body: JsonRecord = { model: model.modelId, stream: true, store: false };
  // Obfuscation pads every event: bytes for nothing.
  if (dialect.streamOptions) body.stream_options = { include_obfuscation: false };
  // A model that does not reason answers 400 to it.
  if (model.thinking && dialect.encryptedReasoning) body.include = ["reasoning.encrypted_content"];
  const reasoning = reasoningOf(request, model, dialect);
  if (reasoning !== undefined) body.reasoning = reasoning;
  if (model.maxOutputTokens !== undefined) body.max_output_tokens = model.maxOutputTokens;
  if (dialect.promptCacheKey) body.prompt_cache_key = request.sessionId;
  if (!isBlank(request.systemPrompt)) body.instructions = request.systemPrompt;
  if (request.tools.length > 0) {
    body.tools = request.tools.map(({ name, description, parameters }) => ({
      type: "function",
      name: wireToolName(name, RESPONSES_NAMES),
      description,
      parameters: parameters ?? { type: "object", properties: {} },
      // On by default, and then a schema that it cannot hold a model to is refused.
      strict: false,
    }));
  }
  body.input = inputItems(request.messages, model, dialect);
  return body;
}

function reasoningOf(request: LLMRequest, model: ModelSpec, dialect: ResponsesDialect): JsonRecord | undefined {
  if (!model.thinking || request.thinkingLevel === "default") return undefined;
  const effort = effortOf(model.modelId, request.thinkingLevel, dialect.most);
  return dialect.summaries && effort !== "none" ? { effort, summary: "auto" } : { effort };
}
