// What the assistant said, as blocks of the Messages protocol: in the order in which it came, with the provider's own
// data byte for byte, and only where it is that model's own.

import { asList, asRecord, asText, isBlank, type JsonRecord, safeArguments } from "./json.js";
import type { AssistantPayload } from "./outgoing.js";
import { type NameRules, wireToolName } from "./tool-names.js";

export interface AssistantOptions {
  /** Reasoning without a signature is refused. */
  signs: boolean;
  /** Thinking is turned off, and past reasoning with it. */
  withoutThinking: boolean;
}

/** @param nextId gives the id of the next call. */
export function assistantBlocks(
  said: readonly AssistantPayload[],
  nextId: () => string,
  options: AssistantOptions,
): JsonRecord[] {
  return said.flatMap((payload) => {
    const { fidelity } = payload;
    const before = asList(fidelity?.blocks_before).flatMap(opaqueBlock);
    const own = blockOf(payload, fidelity, nextId, options);
    return own === undefined ? before : [...before, own];
  });
}

/** Kinds that only a user may send, and those that have messages of their own in the context. */
const NOT_OPAQUE = new Set([
  ...["tool_result", "image", "document", "search_result", "container_upload"],
  ...["tool_use", "thinking", "redacted_thinking"],
]);

/** A block that only its provider understands, as it may go back in an assistant's message: at most one of them. */
function opaqueBlock(value: unknown): JsonRecord[] {
  const block = asRecord(value);
  const type = asText(block?.type);
  if (block === undefined || type === "" || NOT_OPAQUE.has(type)) return [];
  if (type === "text" && isBlank(asText(block.text))) return [];
  return [withoutMark(block)];
}

/** Cache marks are ours to set, for only four may stand in a Request. */
function withoutMark({ cache_control: _mark, ...block }: JsonRecord): JsonRecord {
  if (!Array.isArray(block.content)) return block;
  return {
    ...block,
    content: block.content.map((inner) => (asRecord(inner) === undefined ? inner : withoutMark(inner))),
  };
}

function blockOf(
  payload: AssistantPayload,
  fidelity: JsonRecord | undefined,
  nextId: () => string,
  options: AssistantOptions,
): JsonRecord | undefined {
  switch (payload.type) {
    case "text": {
      if (isBlank(payload.text)) return undefined;
      const citations = asList(fidelity?.citations);
      return { type: "text", text: payload.text, ...(citations.length > 0 ? { citations } : {}) };
    }
    case "thinking":
      return options.withoutThinking ? undefined : thinkingBlock(payload.thinking, fidelity, options);
    case "tool_call":
      return {
        type: "tool_use",
        id: nextId(),
        name: wireToolName(payload.name, ANTHROPIC_NAMES),
        // The protocol wants an object, also where the model itself got it wrong.
        input: JSON.parse(safeArguments(payload.arguments)),
      };
    default:
      return undefined; // media that the assistant made: the protocol has no block for it
  }
}

function thinkingBlock(
  thinking: string,
  fidelity: JsonRecord | undefined,
  options: AssistantOptions,
): JsonRecord | undefined {
  if (fidelity === undefined) return undefined;
  const data = asText(fidelity.redacted_thinking);
  if (data !== "") return { type: "redacted_thinking", data };
  const signature = asText(fidelity.signature);
  if (signature === "" && (options.signs || isBlank(thinking))) return undefined;
  return { type: "thinking", thinking, signature };
}

const isThinking = ({ type }: JsonRecord): boolean => type === "thinking" || type === "redacted_thinking";

export const hasThinking = (blocks: readonly JsonRecord[]): boolean => blocks.some(isThinking);

/** A call of a tool that the provider runs itself. */
const isServerUse = ({ type }: JsonRecord): boolean => type !== "tool_use" && asText(type).endsWith("_use");
const isServerResult = ({ type, tool_use_id }: JsonRecord): boolean =>
  asText(type).endsWith("_tool_result") && typeof tool_use_id === "string";

/** True for an answer in which the provider was using tools of its own, so that it may have paused. */
export const usesServerTools = (blocks: readonly JsonRecord[]): boolean =>
  blocks.some((block) => isServerUse(block) || isServerResult(block));

/**
 * Drops the half of a pair whose other half is missing.
 * @param isOpen the answer is the last message: what it began is still to be answered by the provider.
 */
export function pairServerTools(blocks: readonly JsonRecord[], isOpen: boolean): JsonRecord[] {
  const uses = new Set<unknown>();
  const results = new Set<unknown>();
  for (const block of blocks) {
    if (isServerUse(block)) uses.add(block.id);
    // A result in front of its call answers nothing.
    else if (isServerResult(block) && uses.has(block.tool_use_id)) results.add(block.tool_use_id);
  }
  return blocks.filter((block) => {
    if (isServerUse(block)) return isOpen || results.has(block.id);
    return !isServerResult(block) || results.has(block.tool_use_id);
  });
}

/** The API refuses a message that ends with reasoning, and reasoning must not be taken out of it. */
export const endsInThinking = (blocks: readonly JsonRecord[]): boolean => {
  const last = blocks.at(-1);
  return last !== undefined && isThinking(last);
};

/** What the protocol takes as a tool's name; 64 is the length that every server of it takes. */
export const ANTHROPIC_NAMES: NameRules = { refused: /[^A-Za-z0-9_-]/g, first: /^[A-Za-z0-9_-]/, maxLength: 64 };

/** Ids in the protocol's alphabet, each used once in a Request, the same in every Request of a context. */
export class AnthropicCallIds {
  readonly #taken = new Set<string>();

  /** @param own what the provider called it; @param ours what it is called where that is taken. */
  take(own: string, ours: string): string {
    const [first, second] = [plain(own), plain(ours)];
    let id = this.#taken.has(first) ? second : first;
    for (let n = 2; this.#taken.has(id); n++) id = `${second.slice(0, 56)}_${n}`;
    this.#taken.add(id);
    return id;
  }
}

const plain = (id: string): string => id.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 64) || "call";
