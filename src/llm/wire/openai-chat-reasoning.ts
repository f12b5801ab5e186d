// Reasoning in the chat dialects: four places it may stand in, often two at once with the same text. The text is taken
// from one place only, and what must go back verbatim is collected beside it.

import { asList, asRecord, asText, type JsonRecord } from "./json.js";

/** Fields that hold reasoning as a plain string, the preferred first. */
export const PLAIN_FIELDS = ["reasoning_content", "reasoning", "reasoning_text"] as const;
/** The name for thinking parts inside `content`. */
export const CONTENT_FIELD = "content[].thinking";
/** The name for reasoning that comes only as structured details. */
export const DETAILS_FIELD = "reasoning_details";

export interface ReasoningPart {
  text: string;
  /** Where the text stood. */
  field: string;
  /** Structured entries of this delta, in order. */
  details: JsonRecord[];
}

/** Reads the reasoning of one answer, delta by delta. */
export class ReasoningReader {
  #sawPlain = false;

  /**
   * Runs for every delta, and most have none: named fields, and nothing made for nothing.
   * @param delta a `delta` or a whole `message`; its `content` may be an array.
   */
  read(delta: JsonRecord): ReasoningPart | undefined {
    const details = delta.reasoning_details === undefined ? [] : detailsOf(delta);
    const plain = plainReasoning(delta, details);
    if (plain !== undefined) {
      this.#sawPlain = true;
      return plain;
    }
    const parts = thinkingParts(delta.content);
    if (parts !== "") return { text: parts, field: CONTENT_FIELD, details };
    if (details.length === 0) return undefined;
    // Where a plain field carries the text, the details repeat it.
    const text = this.#sawPlain ? "" : details.map((entry) => asText(entry.text) || asText(entry.summary)).join("");
    return { text, field: DETAILS_FIELD, details };
  }
}

function plainReasoning(delta: JsonRecord, details: JsonRecord[]): ReasoningPart | undefined {
  const { reasoning_content, reasoning, reasoning_text } = delta;
  if (isSaid(reasoning_content)) return { text: reasoning_content, field: "reasoning_content", details };
  if (isSaid(reasoning)) return { text: reasoning, field: "reasoning", details };
  if (isSaid(reasoning_text)) return { text: reasoning_text, field: "reasoning_text", details };
  return undefined;
}

const isSaid = (text: unknown): text is string => typeof text === "string" && text !== "";

function detailsOf(delta: JsonRecord): JsonRecord[] {
  const details: JsonRecord[] = [];
  for (const entry of asList(delta.reasoning_details)) {
    const detail = asRecord(entry);
    if (detail !== undefined) details.push(detail);
  }
  return details;
}

/** The visible text of `content`, which is a string, null, or an array of typed parts. */
export function visibleText(content: unknown): string {
  if (typeof content === "string") return content;
  return asList(content)
    .map((part) => (typeof part === "string" ? part : asRecord(part)))
    .map((part) => (typeof part === "string" ? part : part?.type === "text" ? asText(part.text) : ""))
    .join("");
}

function thinkingParts(content: unknown): string {
  if (!Array.isArray(content)) return "";
  return asList(content)
    .map((part) => asRecord(part))
    .filter((part) => part?.type === "thinking")
    .map((part) => (typeof part?.thinking === "string" ? part.thinking : visibleText(part?.thinking)))
    .join("");
}

/**
 * Adds entries to a list, gluing the pieces of one streamed entry together. Encrypted data comes whole and is never
 * glued; an entry that has its signature is finished.
 */
export function addDetails(list: JsonRecord[], entries: readonly JsonRecord[]): void {
  for (const entry of entries) {
    const last = list.at(-1);
    if (last === undefined || !continues(last, entry)) {
      list.push({ ...entry });
      continue;
    }
    for (const [key, value] of Object.entries(entry)) {
      const glued = key === "text" || key === "summary";
      if (glued && typeof value === "string") last[key] = asText(last[key]) + value;
      else if (value !== null && value !== undefined) last[key] = value;
    }
  }
}

function continues(last: JsonRecord, entry: JsonRecord): boolean {
  if (last.type !== entry.type || last.index !== entry.index || asText(last.signature) !== "") return false;
  if (entry.type !== "reasoning.text" && entry.type !== "reasoning.summary") return false;
  return (
    entry.id === undefined || entry.id === null || last.id === undefined || last.id === null || last.id === entry.id
  );
}
