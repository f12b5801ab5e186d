// From what a provider or a network said to one of our error kinds. The kind alone decides the status and what the
// engine does next, so every table about errors is in this file.

import type { LLMOutcome } from "../engine/ports.js";
import type { ErrorKind, RequestError, StopReason, TokenCounts } from "../protocol/payloads.js";
import { unreachable } from "../result.js";
import { asList, asRecord, asText, type JsonRecord } from "./wire/json.js";

/** The longest message that is shown. Before secrets are out of it, it may be longer: a cut could leave half of one. */
const MAX_MESSAGE = 1000;
const MAX_RAW_MESSAGE = 65_536;

/** Why a Request did not end well. */
export interface Failure {
  error: RequestError;
  /** What the provider asks to wait before another try, in ms; unbounded here. */
  retryAfterMs?: number;
}

export interface HttpRefusal {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  /** As much of it as was read. */
  body: string;
}

export function statusOf(kind: ErrorKind): StopReason {
  switch (kind) {
    case "auth":
    case "invalid_request":
    case "context_overflow":
    case "content_filter":
    case "storage":
    case "unknown":
      return "failed";
    case "rate_limit":
    case "overloaded":
    case "network":
    case "timeout":
      return "timeout";
    case "malformed":
      return "malformed";
    default:
      return unreachable(kind);
  }
}

export function failedOutcome(failure: Failure, usage: TokenCounts, finishReason?: string): LLMOutcome {
  const outcome: LLMOutcome = { status: statusOf(failure.error.kind), usage, error: failure.error };
  if (finishReason !== undefined) outcome.finishReason = finishReason;
  if (failure.retryAfterMs !== undefined) outcome.retryAfterMs = failure.retryAfterMs;
  return outcome;
}

export const failure = (kind: ErrorKind, message: string): Failure => ({
  error: { kind, message: message.slice(0, MAX_RAW_MESSAGE) },
});

/** An answer with a status other than 200. `now` is in ms since 1970, for a `retry-after` that is a date. */
export function httpFailure(refusal: HttpRefusal, now: number): Failure {
  const facts = readBody(refusal.body);
  const message = facts.message === "" ? `HTTP ${refusal.status} with no explanation` : facts.message;
  const found = failure(kindByStatus(refusal.status, facts), message);
  found.error.http_status = refusal.status;
  const wait = askedWait(refusal.headers, now) ?? facts.retryDelayMs;
  if (wait !== undefined) found.retryAfterMs = wait;
  return found;
}

/** An error that came inside an answer with status 200: the value of its `error` member, or the whole event. */
export function inBandFailure(value: unknown): Failure {
  const facts = readFacts(value);
  const found = failure(kindInBand(facts), facts.message || "the provider reported an error without a message");
  if (facts.retryDelayMs !== undefined) found.retryAfterMs = facts.retryDelayMs;
  return found;
}

/** An exception of the network layer. */
export function networkFailure(cause: unknown): Failure {
  const { code, message } = describe(cause);
  if (code === "ERR_INVALID_URL" || code === "UND_ERR_INVALID_ARG") return failure("invalid_request", message);
  if (code === "UND_ERR_HEADERS_TIMEOUT" || code === "UND_ERR_BODY_TIMEOUT") return failure("timeout", message);
  if (code.startsWith("HPE_")) return failure("malformed", `the answer is not HTTP: ${message}`);
  return failure("network", `the connection to the provider failed: ${message}`);
}

/**
 * A provider's words as they may be shown: without secrets, and cut to what a person reads.
 * Secrets shorter than four characters would make holes in ordinary words.
 */
export function presentable(text: string, secrets: readonly (string | undefined)[], longest = MAX_MESSAGE): string {
  let clean = text;
  for (const secret of secrets) {
    if (secret === undefined || secret.length < 4) continue;
    clean = clean.replaceAll(secret, "***");
    // The text may have been cut in the middle of a secret before it came here.
    for (let kept = secret.length - 1; kept >= 4; kept--) {
      if (clean.endsWith(secret.slice(0, kept))) clean = `${clean.slice(0, -kept)}***`;
    }
  }
  return clean.length <= longest ? clean : `${clean.slice(0, longest)}…`;
}

// --- what the error says -------------------------------------------------------------------------------------------

interface Facts {
  message: string;
  /** Every machine word in the error, lower case. */
  codes: ReadonlySet<string>;
  /** An HTTP status that the error itself names. */
  status?: number;
  retryDelayMs?: number;
}

function readBody(body: string): Facts {
  try {
    return readFacts(JSON.parse(body));
  } catch {
    // Not JSON: a proxy's page or plain text. No tag may span a `<`, which keeps this linear.
    const text = body
      .slice(0, 8192)
      .replace(/<[^<>]*>/g, " ")
      .replace(/\s+/g, " ")
      .trim();
    return { message: text, codes: new Set() };
  }
}

function readFacts(value: unknown): Facts {
  const outer = asRecord(Array.isArray(value) ? value[0] : value) ?? {};
  const inner = asRecord(outer.error) ?? outer;
  const details = asList(inner.details).map((detail) => asRecord(detail) ?? {});
  const facts: Facts = {
    message: messageOf(value, outer, inner),
    codes: new Set(
      [inner.type, inner.code, inner.status, inner.reason, inner.error, outer.type, outer.code]
        .concat(
          asRecord(inner.innererror)?.code,
          details.map((detail) => detail.reason),
        )
        .filter((code): code is string => typeof code === "string")
        .map((code) => code.toLowerCase()),
    ),
  };
  const status = [inner.code, inner.status, outer.status].map(Number).find((code) => code >= 400 && code <= 599);
  if (status !== undefined) facts.status = status;
  for (const detail of details) {
    const seconds = /^(\d+(?:\.\d+)?)s$/.exec(asText(detail.retryDelay))?.[1];
    if (seconds !== undefined) facts.retryDelayMs = Math.ceil(Number(seconds) * 1000);
  }
  return facts;
}

function messageOf(value: unknown, outer: JsonRecord, inner: JsonRecord): string {
  const candidates = [inner.message, outer.error, inner.detail, outer.message, outer.detail, inner.msg, value];
  const plain = candidates.find((text): text is string => typeof text === "string" && text.trim() !== "");
  // A router hides the upstream's own words behind "Provider returned error".
  const raw = asText(asRecord(inner.metadata)?.raw);
  if (plain !== undefined) return raw === "" ? plain : `${plain}: ${raw}`;
  return Object.keys(inner).length === 0 ? "" : JSON.stringify(inner);
}

// --- from words to a kind ------------------------------------------------------------------------------------------

const AUTH = new Set([
  ...["authentication_error", "invalid_api_key", "api_key_invalid", "invalid_authentication_error", "unauthorized"],
  ...["unauthenticated", "permission_error", "permission_denied", "invalid_authentication", "api_key_expired"],
]);
const FILTER = new Set([
  "content_filter",
  "content_policy_violation",
  "image_content_policy_violation",
  "responsibleaipolicyviolation",
  "data_inspection_failed",
]);
const OVERFLOW = new Set([
  ...["context_length_exceeded", "context_window_exceeded", "model_max_prompt_tokens_exceeded"],
  ...["exceed_context_size_error", "model_context_window_exceeded"],
]);
const QUOTA = new Set([
  "insufficient_quota",
  "billing_hard_limit_reached",
  "billing_not_active",
  "exceeded_current_quota_error",
]);
const OVERLOADED = new Set([
  ...["overloaded_error", "overloaded", "unavailable", "service_unavailable", "server_overloaded", "slow_down"],
  ...["engine_overloaded_error", "engine_overloaded", "insufficient_system_resource", "service_unavailable_error"],
]);
const RATE = new Set([
  ...["rate_limit_exceeded", "rate_limit_error", "resource_exhausted", "too_many_requests", "ratelimitreached"],
]);
const INVALID = new Set([
  ...["invalid_request_error", "invalid_argument", "bad_request", "bad_request_error", "badrequesterror", "not_found"],
  ...["not_found_error", "model_not_found", "failed_precondition", "request_too_large", "invalid_prompt"],
  ...["billing_error", "unsupported_value", "invalid_value"],
  // An image or a file that the provider could not use: sent again it would fail again.
  ...["invalid_image", "invalid_image_format", "invalid_base64_image", "invalid_image_url", "invalid_image_mode"],
  ...["image_too_large", "image_too_small", "image_parse_error", "image_file_too_large", "empty_image_file"],
  ...["unsupported_image_media_type", "failed_to_download_image", "image_file_not_found", "unsupported_file"],
]);
const TRANSIENT = new Set([
  ...["server_error", "api_error", "internal", "internal_error", "internal_server_error", "internalservererror"],
  ...["timeout", "timeout_error", "deadline_exceeded", "gateway_timeout", "bad_gateway", "upstream_error"],
  "vector_store_timeout",
]);

const CREDENTIAL_WORDS =
  /\b(?:api|access|subscription)[ _-]?key\b.{0,40}\b(?:invalid|incorrect|not valid|missing|expired|revoked|required|not found)\b|\b(?:invalid|incorrect|missing|expired|no|wrong)\b.{0,20}\b(?:x-api|api|access|subscription)[ _-]?key\b|\binvalid (?:authentication|credentials)\b/i;
const OVERFLOW_WORDS =
  /\bcontext[ _-]?(?:length|window|size|limit)\b|\bprompt (?:is )?too long\b|\btoo many (?:input |prompt |total )?tokens\b|\b(?:input|prompt|messages?) (?:is |are )?too (?:long|large)\b|\binput token count\b|\breduce the length of (?:the|your|either)\b|\bmaximum (?:prompt|input) (?:length|tokens)\b/i;

const any = (codes: ReadonlySet<string>, of: ReadonlySet<string>): boolean => [...codes].some((code) => of.has(code));

function kindByStatus(status: number, facts: Facts): ErrorKind {
  const { codes, message } = facts;
  if (status === 401) return "auth";
  if (status === 408) return "timeout";
  if (status === 429) return any(codes, QUOTA) ? "invalid_request" : "rate_limit";
  if (status === 503 || status === 529) return "overloaded";
  if (status >= 500) return any(codes, OVERLOADED) ? "overloaded" : "timeout";
  if (status < 400) return "unknown";
  if (any(codes, FILTER)) return "content_filter";
  if ((status === 400 || status === 413) && (any(codes, OVERFLOW) || OVERFLOW_WORDS.test(message))) {
    return "context_overflow";
  }
  if ((status === 400 || status === 403) && (any(codes, AUTH) || CREDENTIAL_WORDS.test(message))) return "auth";
  return "invalid_request";
}

function kindInBand(facts: Facts): ErrorKind {
  const { codes, message } = facts;
  if (facts.status !== undefined) return kindByStatus(facts.status, facts);
  if (any(codes, AUTH)) return "auth";
  if (any(codes, FILTER)) return "content_filter";
  if (any(codes, OVERFLOW)) return "context_overflow";
  if (any(codes, QUOTA)) return "invalid_request";
  if (any(codes, OVERLOADED)) return "overloaded";
  if (any(codes, RATE)) return "rate_limit";
  if (any(codes, INVALID)) return OVERFLOW_WORDS.test(message) ? "context_overflow" : "invalid_request";
  if (any(codes, TRANSIENT)) return "timeout";
  if (OVERFLOW_WORDS.test(message)) return "context_overflow";
  if (/\boverloaded\b/i.test(message)) return "overloaded";
  if (/\brate limit|\btoo many requests\b/i.test(message)) return "rate_limit";
  return "unknown";
}

// --- pieces --------------------------------------------------------------------------------------------------------

function askedWait(headers: HttpRefusal["headers"], now: number): number | undefined {
  const header = (name: string): string => {
    const value = headers[name];
    return (Array.isArray(value) ? value[0] : value)?.trim() ?? "";
  };
  const plain = /^\d+(?:\.\d+)?$/;
  const ms = header("retry-after-ms");
  if (plain.test(ms)) return Math.ceil(Number(ms));
  const after = header("retry-after");
  if (plain.test(after)) return Math.ceil(Number(after) * 1000);
  // Date.parse takes almost anything ("-5" is a year): an HTTP date begins with a day's name.
  const date = /^[a-z]{3}/i.test(after) ? Date.parse(after) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

function describe(cause: unknown): { code: string; message: string } {
  if (!(cause instanceof Error)) return { code: "", message: String(cause) };
  const first = cause instanceof AggregateError && cause.errors[0] instanceof Error ? cause.errors[0] : cause;
  const inner = first.cause instanceof Error ? first.cause : undefined;
  const code =
    [first, inner].map((error) => asText((error as { code?: unknown } | undefined)?.code)).find(Boolean) ?? "";
  return { code, message: [first.message, inner?.message].filter(Boolean).join(": ") || code || first.name };
}
