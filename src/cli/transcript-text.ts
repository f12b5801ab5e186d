// Parts of a transcript as text.

import { isPayload, type OmniMessage } from "../client/index.js";
import type { Style } from "./terminal.js";

const MAX_ARGUMENTS = 200;
/** What says most about a call, of the built-in tools. */
const TELLING = ["cmd", "file_path", "description", "prompt"];

/** A call's arguments on one line: the one that tells most, or all of them. */
export function argumentsOf(json: string): string {
  let args: unknown;
  try {
    args = JSON.parse(json);
  } catch {
    return shortened(json, MAX_ARGUMENTS); // The model's own mistake; it is shown as it is.
  }
  if (typeof args !== "object" || args === null) return shortened(json, MAX_ARGUMENTS);
  const telling = TELLING.map((name) => (args as Record<string, unknown>)[name]).find(
    (value) => typeof value === "string",
  );
  return shortened(typeof telling === "string" ? telling : json, MAX_ARGUMENTS);
}

/** The first lines of a text, each behind `indent`. */
export function clipped(text: string, max: number, indent: string): string {
  const lines = text.trimEnd().split("\n");
  if (lines.length === 1 && lines[0] === "") return "";
  const more = lines.length - max;
  const some = more > 1 ? [...lines.slice(0, max), `(and ${more} more lines)`] : lines;
  return some.map((line) => `${indent}${line}`).join("\n");
}

/** What an event says to a person, if anything. */
export function lineOfEvent(
  message: OmniMessage,
  nameOf: (toolCallId: string) => string,
): { text: string; style: Style } | undefined {
  if (isPayload(message, "approval_decision")) {
    const { decision, tool_call_id: id, decided_by: by, reason } = message.payload;
    if (decision === "allow") return undefined;
    const why = reason === undefined || reason === "" ? "" : `: ${reason}`;
    return { text: `  ${nameOf(id)} was denied${by === undefined ? "" : ` by ${by}`}${why}`, style: "yellow" };
  }
  if (isPayload(message, "request_end")) {
    const { status, error, retry_in_ms: wait } = message.payload;
    if (status === "completed" || status === "aborted") return undefined;
    const again = wait === undefined ? "" : `; trying again in ${seconds(wait)}`;
    return { text: `! the model failed (${error?.kind ?? status}): ${error?.message ?? status}${again}`, style: "red" };
  }
  if (isPayload(message, "abort")) {
    const { reason } = message.payload;
    const why = interruptionOf(reason);
    if (why !== undefined) return { text: `! Interrupted: ${why}.`, style: "yellow" };
    return { text: `! aborted${typeof reason === "string" && reason !== "" ? `: ${reason}` : ""}`, style: "yellow" };
  }
  if (isPayload(message, "compaction_end")) return { text: "the context was compacted", style: "dim" };
  if (isPayload(message, "inline_data")) return { text: `[${message.payload.mime_type}]`, style: "dim" };
  if (isPayload(message, "image_url")) return { text: "[an image]", style: "dim" };
  return undefined;
}

/** What ended a Task that nobody wanted to end; undefined for what a person did, or is not known. */
export function interruptionOf(reason: unknown): string | undefined {
  if (reason === "server_restarted") return "the server was restarted";
  if (reason === "shutdown") return "the server was shut down";
  if (reason === "session_deleted") return "the Session was deleted";
  return undefined;
}

export const seconds = (ms: number): string => `${Math.max(0, Math.ceil(ms / 1000))} s`;

/** One line of at most `max` characters. */
export function shortened(text: string, max: number): string {
  const characters = [...text.replace(/\s+/g, " ").trim()];
  return characters.length <= max ? characters.join("") : `${characters.slice(0, max - 1).join("")}…`;
}
