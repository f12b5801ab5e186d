// Reading JSON whose shape somebody else decides: each reader gives a safe value for what is missing or odd.

import { MAX_ARGUMENT_DEPTH, nestsDeeper } from "../../protocol/json-depth.js";
import { ok, type Result, refuse } from "../../result.js";

export type JsonRecord = Record<string, unknown>;

export const asRecord = (value: unknown): JsonRecord | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonRecord) : undefined;

const NOTHING: readonly unknown[] = [];

export const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : NOTHING);

/** The string, or "" for anything else. */
export const asText = (value: unknown): string => (typeof value === "string" ? value : "");

/** No answer has more tokens; sums of many such counts stay exact. */
const MAX_COUNT = 1e12;

/** The count, or undefined for anything that is not a believable number of things. */
export const asCount = (value: unknown): number | undefined =>
  typeof value === "number" && value >= 0 && value <= MAX_COUNT ? Math.trunc(value) : undefined;

/** The deepest data of an event; it may be kept as `fidelity`, and is then written a few levels further in. */
const MAX_EVENT_DEPTH = 1000;

/** The data of a provider's event. All decoders read it here, so nothing of it is too deep to be written again. */
export function parseEvent(data: string): Result<unknown, "undecodable"> {
  if (nestsDeeper(data, MAX_EVENT_DEPTH)) return undecodable("nests too deeply", data);
  try {
    return ok(JSON.parse(data));
  } catch {
    return undecodable("is not JSON", data);
  }
}

const undecodable = (why: string, data: string) => refuse("undecodable", `an event that ${why}: ${data.slice(0, 200)}`);

/** True when the text is one whole JSON object. A prefix of an object never is. */
export function isObjectText(text: string): boolean {
  const trimmed = text.trim();
  // Looked at before parsing: this runs on every fragment border of long arguments.
  if (!trimmed.startsWith("{") || !trimmed.endsWith("}")) return false;
  try {
    return asRecord(JSON.parse(trimmed)) !== undefined;
  } catch {
    return false; // not JSON (yet), which is the answer
  }
}

export const isBlank = (text: string): boolean => text.trim() === "";

/**
 * Arguments of a past call as the text of one object that nests no deeper than can be written: some servers parse them
 * and fail on what the model got wrong.
 */
export function safeArguments(args: string): string {
  if (isBlank(args)) return "{}";
  const isLawful = !nestsDeeper(args, MAX_ARGUMENT_DEPTH) && isObjectText(args);
  if (!isLawful) return jsonBody({ unparsed_arguments: args });
  // An escape hides a lone surrogate from the body's own repair, not from the server that parses these.
  return HALF_ESCAPED.test(args) ? args.replace(ESCAPES, repaired) : args;
}

const HALF_ESCAPED = /\\u[dD][89a-fA-F]/;
/** Every escape from left to right, a pair as one, so that an escaped backslash in front of a `u` begins none. */
const ESCAPES = /\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u[\da-fA-F]{4}|\\./g;

const repaired = (escaped: string): string => (/^\\u[dD][89a-fA-F]..$/.test(escaped) ? "\\ufffd" : escaped);

/** JSON for a request body. A lone surrogate, which UTF-8 has no bytes for and strict servers refuse, becomes U+FFFD. */
export function jsonBody(value: unknown): string {
  const json = JSON.stringify(value);
  // Nearly every body is well-formed: JSON.stringify escapes a lone surrogate, and nothing else so.
  return json.includes("\\ud") ? JSON.stringify(value, (_key, inner: unknown) => wellFormed(inner)) : json;
}

const LONE = /\p{Surrogate}/gu;

function wellFormed(value: unknown): unknown {
  if (typeof value === "string") return value.replace(LONE, "\uFFFD");
  const record = asRecord(value);
  if (record === undefined || !Object.keys(record).some((key) => key.search(LONE) >= 0)) return value;
  return Object.fromEntries(Object.entries(record).map(([key, inner]) => [key.replace(LONE, "\uFFFD"), inner]));
}
