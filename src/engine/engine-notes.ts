// Every text that the engine itself says to a person or a model, in one place.

import type { Decision } from "./ports.js";

export const INTERRUPTED = "[interrupted: tool aborted by user]";
export const OUTPUT_WITHHELD = "[output withheld]";
export const NO_RECORD = "[no output was recorded for this call]";
export const CALL_CUT_OFF =
  "This call was cut off by the output limit before its arguments were whole, so it was not run. Make it again, shorter.";
export const INPUT_WITHHELD =
  "[An earlier input was refused by the model's provider twice and has been left out of this conversation.]";

export const maxTurnsNotice = (maxTurns: number): string => `[reached max turns (${maxTurns}); stopping]`;

/** What the model reads in place of the output of a call that was denied. `askedForMs` is how long it stood open. */
export function denialText(decision: Decision, askedForMs: number): string {
  switch (decision.decidedBy) {
    case "abort":
      return INTERRUPTED;
    case "timeout":
      return `Tool call denied: nobody answered within ${Math.round(askedForMs / 100) / 10} s.`;
    default:
      return decision.reason === undefined || decision.reason === ""
        ? "Tool call denied by user."
        : `Tool call denied by user.\n${decision.reason}`;
  }
}
