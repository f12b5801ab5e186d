// A tool call as it is put together: from its fragments, the message itself, the decision and the output.

import type { ToolCallOutputPayload } from "../client/index.js";

export interface Call {
  id: string;
  key: string;
  name: string;
  args: string;
  /** The call is whole; only then can it be asked about or run. */
  isWritten: boolean;
  decision: string;
  decidedBy: string;
  reason: string;
  output: string;
  hasOutput: boolean;
  /** The output is whole. */
  isAnswered: boolean;
  images: readonly string[];
  exitCode: number | null;
  stop: string;
}

export const newCall = (id: string, key: string): Call => ({
  id,
  key,
  name: "",
  args: "",
  isWritten: false,
  decision: "",
  decidedBy: "",
  reason: "",
  output: "",
  hasOutput: false,
  isAnswered: false,
  images: [],
  exitCode: null,
  stop: "",
});

export const outputFields = (payload: ToolCallOutputPayload): Partial<Call> => ({
  output: payload.output,
  images: payload.images ?? [],
  hasOutput: true,
  isAnswered: true,
  exitCode: payload.exit_code ?? null,
  stop: payload.stop_reason ?? "",
});
