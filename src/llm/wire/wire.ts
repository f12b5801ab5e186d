// What a protocol is to the rest of the client: one encoder and one decoder. Adding a protocol adds a file here and a
// line in the client's table; nothing else knows the difference.

import type { LLMOutcome, LLMRequest } from "../../engine/ports.js";
import type { TokenCounts } from "../../protocol/payloads.js";
import type { SegmentWriter } from "../../protocol/segment.js";
import type { ModelSpec } from "../model-spec.js";
import type { Failure } from "../outcome.js";
import type { ToolCallIds } from "../tool-call-ids.js";

/** One server-sent event. A JSON body that came in place of a stream is one event without a name. */
export interface WireEvent {
  event?: string | undefined;
  data: string;
}

export interface HttpCall {
  url: string;
  headers: Record<string, string>;
  body: string;
}

export interface DecoderContext {
  /** Takes the segments; whoever owns the decoder takes the messages out of it. */
  writer: SegmentWriter;
  ids: ToolCallIds;
  /** What `fidelity.from` says of what is decoded: whose it is. */
  from: string;
  /** The tools of the Request, by our names: where a protocol's alphabet made them others, this is the way back. */
  toolNames?: readonly string[];
}

/** Reads one answer. It does no I/O and never throws for anything a provider sent. */
export interface WireDecoder {
  push(event: WireEvent): void;
  /** True when nothing that may still come can matter. */
  readonly done: boolean;
  /** True when the answer has ended and only late word about how may still come: it is waited for, but not for long. */
  readonly settled?: boolean;
  /** True while the token numbers of a settled answer have not come, which are worth a longer wait. */
  readonly owesUsage?: boolean;
  /** As far as the provider has said. */
  readonly usage: TokenCounts;
  /**
   * Closes every open segment and says how the answer ended. Called once.
   * @param lost why the events stopped, when it was not the provider who ended them. An answer that had reached its
   *   protocol's end mark is complete all the same.
   */
  end(lost?: Failure): LLMOutcome;
}

export interface Wire {
  encode(request: LLMRequest, model: ModelSpec): HttpCall;
  decoder(context: DecoderContext): WireDecoder;
}

/** `path` put behind the base URL's own path; its query stays. */
export function endpoint(baseUrl: string, path: string): string {
  const url = new URL(baseUrl);
  url.pathname = url.pathname.replace(/\/+$/, "") + path;
  return url.toString();
}
