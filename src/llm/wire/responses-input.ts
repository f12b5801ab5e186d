// The context as input items. Every call has one output behind its answer, under an id that no other call of the list
// has; reasoning stands only where what it led to still follows.

import { createHash } from "node:crypto";
import { append } from "../../append.js";
import type { OmniMessage } from "../../protocol/message.js";
import type { CompletePayload, ToolCallOutputPayload, ToolCallPayload } from "../../protocol/payloads.js";
import { unreachable } from "../../result.js";
import type { ModelSpec } from "../model-spec.js";
import { utf8Text } from "./attachments.js";
import { asText, isBlank, type JsonRecord, safeArguments } from "./json.js";
import { type AssistantPayload, isCall, outgoingTurns, type Turn, type UserPayload } from "./outgoing.js";
import type { ResponsesDialect } from "./responses-dialect.js";
import { itemsBefore, reasoningItem } from "./responses-fidelity.js";
import { RESPONSES_NAMES } from "./responses-names.js";
import { wireToolName } from "./tool-names.js";

type InputPart =
  | { type: "input_text"; text: string }
  | { type: "input_image"; image_url: string; detail: "auto" }
  | { type: "input_file"; filename: string; file_data: string };

export const inputItems = (
  messages: readonly OmniMessage<CompletePayload>[],
  model: ModelSpec,
  dialect: ResponsesDialect,
): JsonRecord[] => new InputWriter(model, dialect).write(outgoingTurns(messages, model));

/** Writes the `input` of one Request. */
class InputWriter {
  readonly #model: ModelSpec;
  readonly #dialect: ResponsesDialect;
  readonly #callIds = new Set<string>();
  readonly #items: JsonRecord[] = [];

  constructor(model: ModelSpec, dialect: ResponsesDialect) {
    this.#model = model;
    this.#dialect = dialect;
  }

  write(turns: readonly Turn[]): JsonRecord[] {
    for (const turn of turns) this.#turn(turn);
    return this.#items;
  }

  #turn(turn: Turn): void {
    const callIds = turn.assistant.filter(isCall).map((call) => this.#callId(call));
    append(this.#items, this.#assistant(turn.assistant, callIds));
    turn.outputs.forEach((output, n) => {
      this.#items.push({ type: "function_call_output", call_id: callIds[n], output: this.#output(output) });
    });
    this.#user(turn.user);
  }

  #assistant(said: readonly AssistantPayload[], callIds: readonly string[]): JsonRecord[] {
    let calls = 0;
    const items = inPlace(said).flatMap((payload) => {
      const before = itemsBefore(payload.fidelity);
      return [...before, this.#item(payload, isCall(payload) ? (callIds[calls++] as string) : "")];
    });
    // From the end: reasoning goes where what it led to goes, and is refused without it.
    let followed = false;
    return items
      .toReversed()
      .filter((item) => {
        followed = item !== undefined && (item.type !== "reasoning" || followed);
        return followed;
      })
      .toReversed() as JsonRecord[];
  }

  #item(payload: AssistantPayload, callId: string): JsonRecord | undefined {
    switch (payload.type) {
      case "thinking":
        return reasoningItem(payload.fidelity, this.#dialect.signedReasoning);
      case "text": {
        if (isBlank(payload.text)) return undefined;
        const content = [{ type: "output_text", text: payload.text, annotations: [] }];
        const phase = asText(payload.fidelity?.phase);
        return { type: "message", role: "assistant", content, ...(phase === "" ? {} : { phase }) };
      }
      case "tool_call":
        return {
          type: "function_call",
          call_id: callId,
          name: wireToolName(payload.name, RESPONSES_NAMES),
          arguments: safeArguments(payload.arguments),
        };
      case "inline_thinking":
      case "inline_data":
        // Media of the model's own has no place in an assistant's message here.
        return undefined;
      default:
        return unreachable(payload);
    }
  }

  /** The provider's own id where ours replaced it, unless an earlier call of the list has it; else ours. */
  #callId(call: ToolCallPayload): string {
    const own = asText(call.fidelity?.provider_call_id);
    const ours = isPlainId(call.tool_call_id) ? call.tool_call_id : hashed(call.tool_call_id);
    let id = own === "" || this.#callIds.has(own) ? ours : own;
    for (let n = 2; this.#callIds.has(id); n++) id = hashed(`${n}:${ours}`);
    this.#callIds.add(id);
    return id;
  }

  #output({ output, images = [] }: ToolCallOutputPayload): string | InputPart[] {
    if (images.length === 0) return output === "" ? "[no output]" : output;
    const parts = images.map((url) => this.#image(url));
    return isBlank(output) ? parts : [{ type: "input_text", text: output }, ...parts];
  }

  /** Texts stay messages of their own; beside an image or a file they become parts of one. */
  #user(said: readonly UserPayload[]): void {
    const parts = said
      .map((payload) => this.#part(payload))
      .filter((part) => part.type !== "input_text" || !isBlank(part.text));
    if (parts.length === 0) return;
    const messages = said.every((payload) => payload.type === "text") ? parts.map((part) => [part]) : [parts];
    for (const content of messages) this.#items.push({ type: "message", role: "user", content });
  }

  #part(payload: UserPayload): InputPart {
    if (payload.type === "text") return { type: "input_text", text: payload.text };
    if (payload.type === "image_url") return this.#image(payload.image_url);
    const { data, mime_type, file_name = "file" } = payload;
    if (mime_type.startsWith("image/")) return this.#image(`data:${mime_type};base64,${data}`);
    const isRead = mime_type === "application/pdf" && this.#dialect.documents && this.#model.vision;
    if (isRead) return { type: "input_file", filename: file_name, file_data: `data:${mime_type};base64,${data}` };
    const text = utf8Text(data);
    const left = `[${file_name} (${mime_type}) left out: this model does not read such files]`;
    return {
      type: "input_text",
      text: text === undefined ? left : `[file ${file_name}]\n${text}\n[end of ${file_name}]`,
    };
  }

  #image(url: string): InputPart {
    if (this.#model.vision) return { type: "input_image", image_url: url, detail: "auto" };
    return { type: "input_text", text: "[an image left out: this model takes none]" };
  }
}

/** Reasoning whose encrypted form came late goes where its text stood, which it replaces. */
function inPlace(said: readonly AssistantPayload[]): AssistantPayload[] {
  const placed: AssistantPayload[] = [];
  for (const payload of said) {
    const replaces = payload.type === "thinking" ? asText(payload.fidelity?.replaces) : "";
    if (replaces === "") {
      placed.push(payload);
      continue;
    }
    const at = placed.findLastIndex((earlier) => earlier.type === "thinking" && earlier.fidelity?.id === replaces);
    // Out of its place it would be refused.
    if (at >= 0) placed[at] = payload;
  }
  return placed;
}

const isPlainId = (id: string): boolean => /^[A-Za-z0-9_.:-]{1,64}$/.test(id);

const hashed = (id: string): string => `call_${createHash("sha256").update(id).digest("hex").slice(0, 24)}`;
