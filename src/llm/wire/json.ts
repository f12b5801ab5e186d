// Reading JSON whose shape somebody else decides: each reader gives a safe value for what is missing or odd.

export type JsonRecord = Record<string, unknown>;

export const asRecord = (value: unknown): JsonRecord | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonRecord) : undefined;

export const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** The string, or "" for anything else. */
export const asText = (value: unknown): string => (typeof value === "string" ? value : "");

/** The count, or undefined for anything that is not a number of things. */
export const asCount = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? Math.trunc(value) : undefined;

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
