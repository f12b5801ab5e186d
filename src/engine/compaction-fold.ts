// What a compaction has said, as a fold over its records, and the context that comes of it. The text of its last try is the summary: a try that a
// provider answered ends with its `token_usage`.

import { isDeepStrictEqual } from "node:util";
import { userText } from "../protocol/builders.js";
import { isPayload, isSessionMeta } from "../protocol/guards.js";
import type { CompleteMessage, OmniMessage } from "../protocol/message.js";
import type { CompactionBeginPayload } from "../protocol/payloads.js";
import { discardedNote } from "./engine-notes.js";
import { SUMMARY_END, SUMMARY_START } from "./opening.js";

export class CompactionFold {
  #isOpen = false;
  #begin: Pick<CompactionBeginPayload, "reason" | "mode"> = { reason: "manual", mode: "summarize" };
  #saying: string[] = [];
  #said: string[] = [];
  #endedAt = "";

  /** @returns true for a record of a compaction, which is not part of the model's context. */
  push(record: OmniMessage): boolean {
    if (isPayload(record, "compaction_begin")) {
      this.#isOpen = true;
      this.#begin = record.payload;
      this.#saying = [];
      this.#said = [];
    } else if (isPayload(record, "compaction_end") || (this.#isOpen && isSessionMeta(record))) {
      this.#isOpen = false;
      this.#endedAt = record.timestamp;
      return !isSessionMeta(record);
    } else if (!this.#isOpen) return false;
    else if (isPayload(record, "token_usage")) {
      this.#said = this.#saying;
      this.#saying = [];
    } else if (isPayload(record, "text") && record.payload.role === "assistant") this.#saying.push(record.payload.text);
    return true;
  }

  /**
   * What the context begins with that the compaction made. The same records give the same context, also after a restart.
   * @param waiting user messages that no committed Request carried, which follow in any case
   * @param goesOn a Task waits for the model
   */
  opening(prompt: readonly CompleteMessage[], waiting: readonly CompleteMessage[], goesOn: boolean): CompleteMessage[] {
    const at = this.#endedAt;
    if (this.#begin.mode === "summarize") return [userText(at, block(joined(this.#said)))];
    const isRunning = this.#begin.reason !== "manual";
    const carried = isRunning ? prompt.filter((part) => !waiting.some((other) => isDeepStrictEqual(part, other))) : [];
    const texts = carried.flatMap((part) => (isPayload(part, "text") ? [part.payload.text] : []));
    const media = goesOn ? carried.filter((part) => !isPayload(part, "text")) : [];
    return [userText(at, block(discardedNote(texts.join("\n\n"), goesOn))), ...media];
  }
}

const block = (text: string): string => `${SUMMARY_START}\n${text}\n${SUMMARY_END}`;

/** The text of one try. Blank: it is no summary. */
export const joined = (texts: readonly string[]): string =>
  texts
    .map((text) => text.trim())
    .filter((text) => text !== "")
    .join("\n\n");
