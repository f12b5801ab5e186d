// The first records of a context that a compaction began: its summary, then copies of the user messages that no
// committed Request had carried. They are told from a new Prompt by what the compaction left waiting, since a new file
// gets all of them in one write.

import { isDeepStrictEqual } from "node:util";
import { isPayload, isSessionMeta } from "../protocol/guards.js";
import type { OmniMessage } from "../protocol/message.js";
import { isUserInput } from "../protocol/rules/facts.js";

export const SUMMARY_START = "[context_summary]";
export const SUMMARY_END = "[/context_summary]";

/** True for a text that has the form of a context's summary. */
export const isSummaryText = (record: OmniMessage): boolean =>
  isPayload(record, "text") && record.payload.role === "user" && record.payload.text.startsWith(SUMMARY_START);

/** Folds records into what the next one may be. Memory: the user messages that wait. */
export class Opening {
  /** User messages that no committed Request carried; the first `#sent` are in the open one. */
  #waiting: OmniMessage[] = [];
  #sent = 0;
  #stage: "none" | "completed" | "summary" | "copies" = "none";
  #isCompacting = false;

  /** Takes the next record. @returns what it is in a context that begins, undefined for anything else. */
  push(record: OmniMessage): "summary" | "copy" | undefined {
    if (isPayload(record, "compaction_begin")) this.#isCompacting = true;
    else if (isPayload(record, "compaction_end")) {
      this.#isCompacting = false;
      if (record.payload.status === "completed") this.#stage = "completed";
    } else if (isSessionMeta(record)) {
      // Only a compaction begins a second context; its end may be the line that was damaged.
      this.#stage = this.#stage === "completed" || this.#isCompacting ? "summary" : "none";
      this.#isCompacting = false;
    } else if (this.#isCompacting) return undefined;
    else if (isUserInput(record)) return this.#input(record);
    else this.#event(record);
    return undefined;
  }

  /** True between the end of a compaction that completed and the first record of the context that it made. */
  get isOwed(): boolean {
    return this.#stage === "completed";
  }

  /** True behind the `session_meta` of the context that a compaction made, until all of its first records are there. */
  get isBeginning(): boolean {
    return this.#stage === "summary" || this.#stage === "copies";
  }

  #input(record: OmniMessage): "summary" | "copy" | undefined {
    // A damaged session_meta was passed over: the summary itself begins the context.
    if (this.#stage === "summary" || this.#stage === "completed") {
      const isSummary = isSummaryText(record);
      this.#stage = isSummary && this.#waiting.length > 0 ? "copies" : "none";
      if (isSummary) {
        this.#sent = 0;
        return "summary";
      }
    }
    if (this.#stage === "copies" && isDeepStrictEqual(this.#waiting[this.#sent], record)) {
      this.#sent += 1;
      if (this.#sent === this.#waiting.length) this.#settle();
      return "copy";
    }
    this.#settle();
    this.#waiting.push(record);
    return undefined;
  }

  #event(record: OmniMessage): void {
    // An abort may stand between a compaction and its context.
    if (isPayload(record, "abort") && this.#stage === "completed") return;
    this.#settle();
    if (isPayload(record, "request_begin")) this.#sent = this.#waiting.length;
    else if (isPayload(record, "request_end") && record.payload.status === "completed") {
      this.#waiting.splice(0, this.#sent);
      this.#sent = 0;
    }
  }

  /** The context has begun. Copies that did not come (a damaged file) wait no longer. */
  #settle(): void {
    if (this.#stage === "copies") {
      this.#waiting.length = this.#sent;
      this.#sent = 0;
    }
    this.#stage = "none";
  }
}
