// Every sentence that the engine itself says to a person or a model, in one place. The tags and labels of a block or a
// summary stand where these are put together.

import type { Decision } from "./ports.js";

export const INTERRUPTED = "[interrupted: tool aborted by user]";
/** In place of what a failed Task, most often on a disk that refuses, did not record of a call. */
export const OUTPUT_LOST =
  "[the Task failed before the output of this call was on record; the call may have been done]";
export const NOT_RUN = "[the Task failed before this call was run]";
export const OUTPUT_WITHHELD = "[output withheld]";
export const MEDIA_WITHHELD = "[An image or file stood here; the model's provider does not take it any more.]";
export const NO_RECORD = "[no output was recorded for this call]";
export const NO_ANSWER = "The tool ended without an answer.";
export const toolFailed = (reason: string): string => `The tool failed: ${reason}`;
export const CALL_CUT_OFF =
  "This call was cut off by the output limit before its arguments were whole, so it was not run. Make it again, shorter.";
export const INPUT_WITHHELD =
  "[An earlier input was refused by the model's provider twice and has been left out of this conversation.]";

/** Why an answer that ended well is taken for a failed one. */
export const EMPTY_ANSWER = "the answer was empty";
export const EMPTY_SUMMARY = "the summary was empty";
export const CALL_FOR_SUMMARY = "the model called a tool in place of a summary";

/** How a block begins that tells of a Request that did not commit. */
export const CARRY_OVER = {
  turn_aborted: "The last turn was interrupted before it was complete. Until then it had come to this:",
  turn_retried: "A try at this turn failed before it was complete. Until then it had come to this:",
};
export const CAME_TO_NOTHING = "The last turn was interrupted before anything was said in it.";

export const COMPACTION_PROMPT = `This conversation is about to be replaced by a summary of it, because it has become long. Write that summary now.
Whoever goes on has nothing but your words and must be able to go on without asking again. Do not call any tool.
Say, as far as it applies: what the user wants, in their words where these matter; what was decided and why; what was
done, with exact paths, names, commands and values; what was found out, errors included; what is unfinished, and the
very next step.`;

/** Stands in a summary's Request in place of the turns that were cut. */
export const TURNS_CUT = "[The oldest turns of this conversation did not fit and have been left out here.]";

/** What a context begins with whose past was discarded. `prompt` is the running Task's, "" where there is none to tell. */
export function discardedNote(prompt: string, goesOn: boolean): string {
  const note = "The conversation before this point has been discarded.";
  if (prompt === "") return note;
  const title = goesOn ? "The task at hand, of which a part may be done:" : "The last prompt, which has been answered:";
  return `${note} ${title}\n\n${prompt}`;
}

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
