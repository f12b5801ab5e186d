// A tool call in words.

import type { ToolItem } from "./item-types.js";
import { unreachable } from "./unreachable.js";

/** The argument that says most; they are tried in this order. */
const TELLING = ["cmd", "file_path", "source", "description", "path", "url", "query"];

export interface ReadArguments {
  telling: string;
  others: { name: string; value: string }[];
  /** Text that is no JSON object: it is still being written, or broken. */
  raw: string;
  values: Record<string, unknown>;
}

export function readArguments(json: string): ReadArguments {
  try {
    const value: unknown = JSON.parse(json.trim() === "" ? "{}" : json);
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw new TypeError("no object");
    const values = value as Record<string, unknown>;
    const telling = TELLING.find((name) => typeof values[name] === "string");
    const others = Object.entries(values)
      .filter(([name]) => name !== telling)
      .map(([name, each]) => ({ name, value: typeof each === "string" ? each : JSON.stringify(each, null, 2) }));
    return { telling: telling === undefined ? "" : String(values[telling]), others, raw: "", values };
  } catch {
    return { telling: "", others: [], raw: json, values: {} };
  }
}

/** A subagent's description that is the beginning of its prompt says nothing beside it. */
export function isRepeated(name: string, { telling, values }: ReadArguments): boolean {
  const { prompt } = values;
  return name === "run_subagent" && typeof prompt === "string" && prompt.trim().startsWith(telling.replace(/…$/, ""));
}

export type Tone = "busy" | "quiet" | "ask" | "good" | "warn" | "bad";

export function describeState(item: ToolItem): { text: string; tone: Tone } {
  switch (item.state) {
    case "writing":
      return { text: "Being written", tone: "busy" };
    case "waiting":
      return { text: "Waiting its turn", tone: "quiet" };
    case "approval":
      return { text: "Needs your approval", tone: "ask" };
    case "running":
      return { text: "Running", tone: "busy" };
    case "done":
      if (item.exitCode === null) return { text: "Done", tone: "good" };
      return { text: `Exit code ${item.exitCode}`, tone: item.exitCode === 0 ? "good" : "warn" };
    case "failed":
      return { text: "Failed", tone: "bad" };
    case "timeout":
      return { text: "Timed out", tone: "bad" };
    case "denied":
      return { text: item.decidedBy === "timeout" ? "Denied: nobody answered" : "Denied", tone: "warn" };
    case "aborted":
      return { text: "Interrupted", tone: "warn" };
    case "cut":
      return { text: "Not run", tone: "warn" };
    default:
      return unreachable(item.state);
  }
}

export function approvalText(item: ToolItem): string {
  if (item.state === "denied" || item.state === "aborted" || item.decidedBy === "") return "";
  // A call that could not run is let through so that it is answered; nobody allowed anything.
  if ((item.state === "failed" || item.state === "cut") && item.decidedBy === "policy") return "";
  return item.decidedBy === "policy" ? "Allowed by the Session's mode" : "Allowed by you";
}
