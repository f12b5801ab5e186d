// The Prompt of the Task that runs or ran last, as a fold over the Trace's records, across compactions. A Prompt is the
// user messages between the end of a Task and the next Request.

import { isPayload } from "../protocol/guards.js";
import type { CompleteMessage, OmniMessage } from "../protocol/message.js";
import { isModelContent, isUserInput } from "../protocol/rules/facts.js";

export class TaskPrompt {
  messages: CompleteMessage[] = [];
  /** True from a Prompt until the record that ends its Task. */
  #isOpen = false;
  /** True once a Request has carried it. */
  #isWhole = false;
  #isInRequest = false;
  #calls = 0;

  /** Takes the next record that is not part of a compaction or a copy that it made. */
  push(record: OmniMessage): void {
    if (isUserInput(record)) this.#input(record as CompleteMessage);
    else if (isPayload(record, "request_begin")) {
      this.#isOpen = true;
      this.#isWhole = true;
      this.#isInRequest = true;
      this.#calls = 0;
    } else if (isPayload(record, "tool_call")) this.#calls += 1;
    else if (isPayload(record, "request_end")) {
      this.#isInRequest = false;
      const { status, retry_in_ms } = record.payload;
      this.#isOpen = status === "completed" ? this.#calls > 0 : retry_in_ms !== undefined;
      // The notice of max_turns, the only thing that is said outside of a Request, ends a Task.
    } else if (isPayload(record, "abort") || (isModelContent(record) && !this.#isInRequest)) {
      this.#isOpen = false;
      this.#isInRequest = false;
    }
  }

  #input(record: CompleteMessage): void {
    if (!this.#isOpen) {
      this.messages = [record];
      this.#isOpen = true;
      this.#isWhole = false;
      // What comes while the Task's Requests go on is steering.
    } else if (!this.#isWhole) this.messages.push(record);
  }
}
