// The encoder of Gemini's generateContent. Given the same context it writes the same bytes, and `contents` comes last,
// so that a provider's prefix cache holds.
//
// Contents take turns, the user first and last. Every content with calls is followed by one with a response for each of
// them, in call order, before anything else. What the model signed goes back in the part it came in, to this model only.

import { append } from "../../append.js";
import type { LLMRequest } from "../../engine/ports.js";
import type {
  InlineDataPayload,
  InlineThinkingPayload,
  TextPayload,
  ThinkingPayload,
  ToolCallOutputPayload,
  ToolCallPayload,
} from "../../protocol/payloads.js";
import { unreachable } from "../../result.js";
import type { ModelSpec } from "../model-spec.js";
import { imagePart, mediaPart } from "./gemini-media.js";
import { GEMINI_NAMES } from "./gemini-names.js";
import { geminiParameters } from "./gemini-schema.js";
import { thinkingConfig, wantsSignatures } from "./gemini-thinking.js";
import { asRecord, asText, isBlank, type JsonRecord, jsonBody, safeArguments } from "./json.js";
import { type AssistantPayload, isCall, outgoingTurns, type Turn, type UserPayload } from "./outgoing.js";
import { wireToolName } from "./tool-names.js";
import { endpoint, type HttpCall } from "./wire.js";

/** Documented for calls that no Gemini 3 model made: it takes the place of their signature. */
const NO_SIGNATURE = "skip_thought_signature_validator";

export function encodeGemini(request: LLMRequest, model: ModelSpec): HttpCall {
  const headers: Record<string, string> = { "content-type": "application/json", accept: "text/event-stream" };
  const base = new URL(model.baseUrl);
  if (model.apiKey !== undefined) {
    // A project's path is Vertex, which takes a token.
    if (/\/projects\//.test(base.pathname)) headers.authorization = `Bearer ${model.apiKey}`;
    else headers["x-goog-api-key"] = model.apiKey;
  }
  return { url: streamUrl(base, model.modelId), headers, body: jsonBody(requestBody(request, model)) };
}

/** Without `alt=sse` the answer is one JSON array. */
function streamUrl(base: URL, modelId: string): string {
  const version = /\/v\d+(?:(?:alpha|beta)\d*)?(?:\/|$)/.test(base.pathname) ? "" : "/v1beta";
  const path = modelId.includes("/") ? modelId : `models/${modelId}`;
  const name = path.split("/").map(encodeURIComponent).join("/");
  const url = new URL(endpoint(base.toString(), `${version}/${name}:streamGenerateContent`));
  url.searchParams.set("alt", "sse");
  return url.toString();
}

function requestBody(request: LLMRequest, model: ModelSpec): JsonRecord {
  const body: JsonRecord = {};
  if (!isBlank(request.systemPrompt)) body.systemInstruction = { parts: [{ text: request.systemPrompt }] };
  if (request.tools.length > 0) {
    const functionDeclarations = request.tools.map(({ name, description, parameters }) => {
      const schema = geminiParameters(parameters);
      const declaration: JsonRecord = { name: wireToolName(name, GEMINI_NAMES), description };
      return schema === undefined ? declaration : { ...declaration, parametersJsonSchema: schema };
    });
    body.tools = [{ functionDeclarations }];
    body.toolConfig = { functionCallingConfig: { mode: "AUTO" } };
  }
  const generationConfig: JsonRecord = {};
  if (model.maxOutputTokens !== undefined) generationConfig.maxOutputTokens = model.maxOutputTokens;
  const thinking = model.thinking
    ? thinkingConfig(model.modelId, request.thinkingLevel, model.maxOutputTokens)
    : undefined;
  if (thinking !== undefined) generationConfig.thinkingConfig = thinking;
  if (Object.keys(generationConfig).length > 0) body.generationConfig = generationConfig;
  body.contents = new GeminiContents(model).write(request);
  return body;
}

interface Content {
  role: "user" | "model";
  parts: JsonRecord[];
}

/** Writes the `contents` of one Request. */
class GeminiContents {
  readonly #model: ModelSpec;
  readonly #contents: Content[] = [];

  constructor(model: ModelSpec) {
    this.#model = model;
  }

  write(request: LLMRequest): Content[] {
    for (const turn of outgoingTurns(request.messages, this.#model)) this.#turn(turn);
    const contents = this.#contents;
    if (contents[0]?.role === "model") contents.unshift(said("[what came before this is not on record]"));
    if (contents.at(-1)?.role !== "user") contents.push(said("[go on]"));
    return contents;
  }

  #turn({ assistant, outputs, user }: Turn): void {
    const calls = assistant.filter(isCall);
    const ids = this.#wireIds(calls);
    const parts = assistant.flatMap((payload) => this.#modelPart(payload, calls, ids));
    this.#sign(parts);
    this.#push("model", parts);
    this.#push(
      "user",
      outputs.map((output, n) => responsePart(output, calls[n], ids[n])),
    );
    this.#push("user", this.#toolImages(outputs, calls));
    this.#push("user", this.#foreignMedia(assistant));
    this.#push(
      "user",
      user.flatMap((payload) => this.#userPart(payload)),
    );
  }

  /** Neither an empty content nor two of one role in a row is taken. */
  #push(role: Content["role"], parts: readonly JsonRecord[]): void {
    if (parts.length === 0) return;
    const last = this.#contents.at(-1);
    if (last?.role === role) append(last.parts, parts);
    else this.#contents.push({ role, parts: [...parts] });
  }

  #modelPart(
    payload: AssistantPayload,
    calls: readonly ToolCallPayload[],
    ids: readonly (string | undefined)[],
  ): JsonRecord[] {
    switch (payload.type) {
      case "text":
        return this.#text(payload);
      case "thinking":
        return this.#thinking(payload);
      case "inline_thinking":
      case "inline_data":
        return this.#media(payload);
      case "tool_call":
        return [signed(callPart(payload, ids[calls.indexOf(payload)]), this.#signature(payload))];
      default:
        return unreachable(payload);
    }
  }

  #text(payload: TextPayload): JsonRecord[] {
    const signature = this.#signature(payload);
    return payload.text === "" && signature === "" ? [] : [signed({ text: payload.text }, signature)];
  }

  /** Unsigned thoughts need not go back and cost tokens; a hidden part takes the place it was in. */
  #thinking(payload: ThinkingPayload): JsonRecord[] {
    const signature = this.#signature(payload);
    const hidden = asRecord(payload.fidelity?.part);
    if (hidden !== undefined) return [signed(hidden, signature)];
    return signature === "" ? [] : [signed({ text: payload.thinking, thought: true }, signature)];
  }

  #media(payload: InlineThinkingPayload | InlineDataPayload): JsonRecord[] {
    if (payload.fidelity === undefined) return [];
    const signature = this.#signature(payload);
    const part: JsonRecord = { inlineData: { mimeType: payload.mime_type, data: payload.data } };
    if (payload.type === "inline_data") return [signed(part, signature)];
    return signature === "" ? [] : [signed({ ...part, thought: true }, signature)];
  }

  /** A step of which no call is signed was made by another model, or the signature is lost: the first call stands for it. */
  #sign(parts: readonly JsonRecord[]): void {
    if (!wantsSignatures(this.#model.modelId)) return;
    const calls = parts.filter((part) => part.functionCall !== undefined);
    const [first] = calls;
    if (first !== undefined && calls.every((part) => part.thoughtSignature === undefined)) {
      first.thoughtSignature = NO_SIGNATURE;
    }
  }

  #signature({ fidelity }: Pick<TextPayload, "fidelity">): string {
    return asText(fidelity?.thought_signature);
  }

  /**
   * The id of each call: the provider's own where it gave one, and none where it gave none or another model called.
   * Ids that are repeated within the batch would pair wrongly; ours take their place.
   */
  #wireIds(calls: readonly ToolCallPayload[]): (string | undefined)[] {
    const own = calls.map(({ fidelity, tool_call_id }) => {
      if (fidelity === undefined || fidelity.provider_call_id === null) return undefined;
      return asText(fidelity.provider_call_id) || tool_call_id;
    });
    const given = own.filter((id) => id !== undefined);
    if (new Set(given).size === given.length) return own;
    const ours = calls.map(({ tool_call_id }) => tool_call_id);
    return new Set(ours).size === ours.length ? ours : calls.map(() => undefined);
  }

  /** Behind the responses, because nothing may stand between them. */
  #toolImages(outputs: readonly ToolCallOutputPayload[], calls: readonly ToolCallPayload[]): JsonRecord[] {
    return outputs.flatMap(({ images = [] }, n) => {
      if (images.length === 0) return [];
      const label = { text: `[${images.length === 1 ? "image" : "images"} from ${calls[n]?.name ?? "tool"}]` };
      return [label, ...images.map((url) => imagePart(url, this.#model.vision))];
    });
  }

  /** Media of another model's: in a model's content it would lack this model's signature, so it is shown to it. */
  #foreignMedia(assistant: readonly AssistantPayload[]): JsonRecord[] {
    return assistant.flatMap((payload) => {
      if (payload.type !== "inline_data" || payload.fidelity !== undefined) return [];
      const { mime_type, data, file_name = "file" } = payload;
      return [{ text: "[from the assistant]" }, mediaPart(mime_type, data, file_name, this.#model.vision)];
    });
  }

  #userPart(payload: UserPayload): JsonRecord[] {
    switch (payload.type) {
      case "text":
        return isBlank(payload.text) ? [] : [{ text: payload.text }];
      case "image_url":
        return [imagePart(payload.image_url, this.#model.vision)];
      case "inline_data": {
        const { mime_type, data, file_name } = payload;
        const part = mediaPart(mime_type, data, file_name ?? "file", this.#model.vision);
        return file_name === undefined || part.inlineData === undefined
          ? [part]
          : [{ text: `[file ${file_name}]` }, part];
      }
      default:
        return unreachable(payload);
    }
  }
}

const said = (text: string): Content => ({ role: "user", parts: [{ text }] });

const signed = (part: JsonRecord, signature: string): JsonRecord =>
  signature === "" ? { ...part } : { ...part, thoughtSignature: signature };

function callPart(call: ToolCallPayload, id: string | undefined): JsonRecord {
  const functionCall: JsonRecord = {
    name: wireToolName(call.name, GEMINI_NAMES),
    args: JSON.parse(safeArguments(call.arguments)),
  };
  if (id !== undefined) functionCall.id = id;
  return { functionCall };
}

/** `response` must be an object; its two names are the documented ones. */
function responsePart(
  output: ToolCallOutputPayload,
  call: ToolCallPayload | undefined,
  id: string | undefined,
): JsonRecord {
  const isError = output.stop_reason !== undefined && output.stop_reason !== "completed";
  const functionResponse: JsonRecord = {
    name: wireToolName(call?.name ?? "tool", GEMINI_NAMES),
    response: { [isError ? "error" : "output"]: output.output },
  };
  if (id !== undefined) functionResponse.id = id;
  return { functionResponse };
}
