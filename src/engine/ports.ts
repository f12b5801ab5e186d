// What the engine needs of the world, in its own words. `llm`, `tools`, `trace` and `session` implement these without
// knowing each other.

import type { OmniMessage } from "../protocol/message.js";
import type {
  CompletePayload,
  RequestError,
  StopReason,
  TokenCounts,
  ToolCallPayload,
  ToolDefinition,
} from "../protocol/payloads.js";

export const THINKING_LEVELS = ["default", "none", "low", "medium", "high", "xhigh", "max"] as const;
export type ThinkingLevel = (typeof THINKING_LEVELS)[number];

/** One Request to a model. The client holds no history: the whole context comes each time. */
export interface LLMRequest {
  sessionId: string;
  systemPrompt: string;
  tools: readonly ToolDefinition[];
  /** The context in the model's order: every call followed by its outputs, in call order. */
  messages: readonly OmniMessage<CompletePayload>[];
  thinkingLevel: ThinkingLevel;
  /** True when this `tool_call_id` was already used in the Session; such an id is replaced before anyone sees it. */
  isCallIdTaken(toolCallId: string): boolean;
  signal: AbortSignal;
}

export interface LLMOutcome {
  status: StopReason;
  /** Zeros where the provider gave nothing. */
  usage: TokenCounts;
  /** Present when `status` is neither `completed` nor `aborted`. */
  error?: RequestError;
  /** The provider's own word for why it stopped. */
  finishReason?: string;
  /** An output limit cut the answer off; what was said counts. */
  truncated?: boolean;
  /** The provider stopped in the middle of its own work: the same context, with this answer in it, lets it go on. */
  pause?: true;
  /** What the provider asks to wait before another try, in ms. */
  retryAfterMs?: number;
}

export interface LLMClient {
  /**
   * Streams one answer: model segments by the streaming discipline, nothing else. Each yield is what one read of the
   * network gave, in order and never empty. Never throws. On abort it ends soon and may leave a segment open: the
   * engine closes it. On any other end every segment is closed, marked with the status when it is not `completed`.
   */
  stream(request: LLMRequest): AsyncGenerator<readonly OmniMessage[], LLMOutcome, void>;
}

export interface Decision {
  decision: "allow" | "deny";
  decidedBy: "user" | "policy" | "timeout" | "abort";
  reason?: string;
  /** How long the question stood open, in ms; left out: since it was put to the approver. */
  askedForMs?: number;
}

/** A person's answer, and how to tell whoever gave it that it is recorded (or why it could not be). */
export interface Answer extends Decision {
  recorded(error?: Error): void;
}

/**
 * Decides about a call whose turn has come. A plain Decision is a policy's and is taken at once; a promise waits for a
 * person. Rejection means deny. When `signal` aborts, the question is withdrawn and the promise may stay pending.
 */
export type Approver = (
  call: OmniMessage<ToolCallPayload>,
  signal: AbortSignal,
) => Decision | Promise<Decision | Answer>;

export interface ToolExecution {
  call: OmniMessage<ToolCallPayload>;
  signal: AbortSignal;
  /** Life of a tool whose output is being held back: bytes produced so far and the latest text. At most twice a second. */
  onProgress(progress: { toolCallId: string; bytes: number; tail: string }): void;
  /** Says that a child Session works for this call. Resolves once that is on record; rejects when it cannot be. */
  pointTo(childSessionId: string): Promise<void>;
}

export interface Environment {
  definitions(): readonly ToolDefinition[];
  /**
   * Whether a call could run: known tool, arguments that are an object and fit its schema.
   * @returns undefined when it could; otherwise the text that tells the model what to fix.
   */
  check(call: OmniMessage<ToolCallPayload>): string | undefined;
  /**
   * Runs one call and yields its output by the streaming discipline, ending with one complete `tool_call_output`.
   * Never throws for a bad name, bad arguments, a time-out or a crash: they are `failed` or `timeout` outputs. When the
   * signal aborts it ends within its grace (2 s and a little for a stubborn process) with an `aborted` output.
   */
  execute(execution: ToolExecution): AsyncGenerator<readonly OmniMessage[], void, void>;
  /** True for a tool that may change something: `read-only` mode asks for it. Unknown tools count as such. */
  mayWrite(toolName: string): boolean;
}
