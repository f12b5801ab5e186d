// The one table from code to status, and the one shape of every answer that is not 2xx.

import { isStorageError } from "../session/is-storage-error.js";
import type { SessionRefusal } from "../session/refusal.js";

const STATUS = {
  invalid_request: 400,
  unknown_model: 400,
  ordinal_not_committed: 400,
  workspace_not_found: 400,
  images_not_supported: 400,
  file_not_supported: 400,
  unauthorized: 401,
  not_allowed: 403,
  host_not_allowed: 403,
  origin_not_allowed: 403,
  not_found: 404,
  session_not_found: 404,
  task_not_found: 404,
  approval_not_found: 404,
  not_pending: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  task_in_progress: 409,
  nothing_to_compact: 409,
  model_unavailable: 409,
  workspace_missing: 409,
  not_running: 409,
  approval_already_decided: 409,
  idempotency_mismatch: 409,
  body_too_large: 413,
  uri_too_long: 414,
  unsupported_media_type: 415,
  expectation_failed: 417,
  too_many_sessions: 429,
  too_many_tasks: 429,
  too_many_queued: 429,
  too_many_streams: 429,
  headers_too_large: 431,
  internal: 500,
  shutting_down: 503,
  not_ready: 503,
  storage_failed: 507,
} as const satisfies Record<SessionRefusal, number> & Record<string, number>;

export type ErrorCode = keyof typeof STATUS;

/** Seconds after which another try may succeed. */
const RETRY_AFTER_S: Partial<Record<ErrorCode, number>> = {
  too_many_sessions: 5,
  too_many_tasks: 5,
  too_many_queued: 5,
  too_many_streams: 5,
  shutting_down: 2,
  not_ready: 5,
  storage_failed: 5,
};

/** One problem of a request: `path` is where (dots between the steps), `message` what. */
export interface Problem {
  path: string;
  message: string;
}

export interface ErrorBody {
  error: { code: ErrorCode; message: string; details?: Problem[] };
}

/** Thrown by a route or a hook to end a request with a refusal; the error handler is the only one that answers it. */
export class HttpError extends Error {
  readonly code: ErrorCode;
  readonly headers: Readonly<Record<string, string>>;
  readonly details: Problem[] | undefined;

  constructor(code: ErrorCode, message: string, more: { details?: Problem[]; headers?: Record<string, string> } = {}) {
    super(message);
    this.name = "HttpError";
    this.code = code;
    this.details = more.details;
    this.headers = { ...retryAfter(code), ...more.headers };
  }
}

/** A refusal that names a field says it as "field: what is wrong"; anything else concerns the request as a whole. */
function problemIn(message: string): Problem {
  const [, path = "", rest = message] = /^([A-Za-z][\w.]*): (.+)$/s.exec(message) ?? [];
  return { path, message: rest };
}

export function statusOf(code: ErrorCode): number {
  return STATUS[code];
}

export function errorBody(code: ErrorCode, message: string, details?: Problem[]): ErrorBody {
  const problems = details ?? (code === "invalid_request" ? [problemIn(message)] : undefined);
  return { error: { code, message, ...(problems === undefined ? {} : { details: problems }) } };
}

/** @returns the value of a Result, or throws its refusal. */
export function orThrow<T>(
  result: { ok: true; value: T } | { ok: false; code: SessionRefusal; message: string; problems?: Problem[] },
): T {
  if (result.ok) return result.value;
  const { code, message, problems } = result;
  throw new HttpError(code, message, problems === undefined ? {} : { details: problems });
}

// What Fastify itself refuses, in our words: its own messages name its internals.
const FRAMEWORK: Record<string, [ErrorCode, string]> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ["unsupported_media_type", "the body must be application/json"],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ["invalid_request", "the body is not as long as its content-length says"],
  FST_ERR_CTP_BODY_TOO_LARGE: ["body_too_large", "the body is larger than this server takes"],
  FST_ERR_CTP_EMPTY_JSON_BODY: ["invalid_request", "the body is empty"],
  FST_ERR_BAD_URL: ["invalid_request", "the path is not a well-formed URL"],
  FST_ERR_MAX_PARAM_LENGTH: ["uri_too_long", "a part of the path is too long"],
};

/** @returns the refusal that an error stands for, or undefined when it is a bug. */
export function refusalOf(error: unknown): HttpError | undefined {
  if (error instanceof HttpError) return error;
  // Its message holds no path; what is behind it goes to the log of whoever met it.
  if (isStorageError(error)) return new HttpError("storage_failed", error.message);
  const { code, statusCode } = error as { code?: string; statusCode?: number };
  const known = code === undefined ? undefined : FRAMEWORK[code];
  if (known !== undefined) return new HttpError(...known);
  // A client that goes away while it sends its body is no failure of ours.
  if (code === "ECONNRESET" || code === "ECONNABORTED") return new HttpError("invalid_request", "the body broke off");
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return new HttpError("invalid_request", "the request is malformed");
  }
  return undefined;
}

function retryAfter(code: ErrorCode): Record<string, string> {
  const seconds = RETRY_AFTER_S[code];
  return seconds === undefined ? {} : { "retry-after": String(seconds) };
}
