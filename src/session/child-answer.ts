// What a child's Task comes to for its parent's model: the last text of the last Request that committed.

import { isPayload } from "../protocol/guards.js";
import type { OmniMessage } from "../protocol/message.js";
import type { SubagentOutput } from "../tools/run-subagent.js";
import type { TaskView } from "./types.js";

const STOPPED = "[interrupted: the subagent was aborted]";

export class ChildAnswer {
  #isOpen = false;
  /** What the open Request has said. */
  #said = "";
  #text = "";
  /** What the engine said outside of any Request: that the Task has no turns left. */
  #notice = "";

  push(message: OmniMessage): void {
    if (isPayload(message, "request_begin")) {
      this.#isOpen = true;
      this.#said = "";
    } else if (isPayload(message, "request_end")) {
      this.#isOpen = false;
      if (message.payload.status === "completed") this.#text = this.#said;
    } else if (
      isPayload(message, "text") &&
      message.payload.role === "assistant" &&
      message.payload.text.trim() !== ""
    ) {
      if (this.#isOpen) this.#said = message.payload.text;
      else this.#notice = message.payload.text;
    }
  }

  /** The tool's output, once the Task is over. */
  output({ status = "completed", error }: Pick<TaskView, "status" | "error">): SubagentOutput {
    const text = this.#text;
    if (status === "completed") return this.#notice === "" ? { text } : { text, note: this.#notice };
    if (status === "aborted") return { text, stop: "aborted", note: STOPPED };
    const why = error === undefined ? status : `${error.kind}: ${error.message}`;
    return { text, stop: "failed", note: `[the subagent failed: ${why}]` };
  }
}
