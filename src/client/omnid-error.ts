// The one error of the client: whatever the server refuses, and whatever keeps it from answering.

import type { ErrorCode, Problem } from "./wire.js";

/** `network`: there was no answer. `http`: an answer that is not this server's. `unreadable`: one that is not whole. */
export type OmnidErrorCode = ErrorCode | "network" | "http" | "unreadable";

export interface OmnidErrorFacts {
  status?: number;
  details?: readonly Problem[];
  retryAfter?: number | undefined;
  requestId?: string | undefined;
  cause?: unknown;
}

export class OmnidError extends Error {
  /** HTTP status; 0 where there was no answer. */
  readonly status: number;
  /** Stable and made for programs. A newer server may have codes that are not in the type. */
  readonly code: OmnidErrorCode;
  /** Each problem of a request that did not fit its schema. */
  readonly details: readonly Problem[];
  /** Seconds after which another try may succeed. */
  readonly retryAfter: number | undefined;
  /** What the server's log calls the request. */
  readonly requestId: string | undefined;

  constructor(code: OmnidErrorCode, message: string, facts: OmnidErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = "OmnidError";
    this.code = code;
    this.status = facts.status ?? 0;
    this.details = facts.details ?? [];
    this.retryAfter = facts.retryAfter;
    this.requestId = facts.requestId;
  }
}

/** Makes the error that an answer stands for, reading its body. `now` is in ms since 1970. Never rejects. */
export async function refusalOf(response: Response, now: number): Promise<OmnidError> {
  const facts = {
    status: response.status,
    retryAfter: secondsOf(response.headers.get("retry-after"), now),
    requestId: response.headers.get("x-request-id") ?? undefined,
  };
  try {
    const { error } = (await response.json()) as { error: { code: ErrorCode; message: string; details?: Problem[] } };
    if (typeof error.code === "string" && typeof error.message === "string") {
      return new OmnidError(error.code, error.message, { ...facts, details: error.details ?? [] });
    }
  } catch {
    // A proxy's page, or nothing: the status is all there is.
  }
  return new OmnidError("http", `the server answered ${response.status} ${response.statusText}`.trim(), facts);
}

function secondsOf(header: string | null, now: number): number | undefined {
  if (header === null) return undefined;
  if (/^\d+$/.test(header)) return finite(Number(header));
  const at = Date.parse(header);
  return finite(Math.max(0, Math.ceil((at - now) / 1000)));
}

const finite = (seconds: number): number | undefined => (Number.isFinite(seconds) ? seconds : undefined);
