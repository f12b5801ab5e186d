// What a fragment adds to its segment, whatever kind it is.

import { unreachable } from "../result.js";
import type { PartialPayload } from "./payloads.js";

export function contentOf(payload: PartialPayload): string {
  switch (payload.type) {
    case "partial_text":
      return payload.text;
    case "partial_thinking":
      return payload.thinking;
    case "partial_tool_call":
      return payload.arguments;
    case "partial_tool_call_output":
      return payload.output;
    default:
      return unreachable(payload);
  }
}
