// What a route says of its answers, for the OpenAPI document; `reference.ts` makes the document of it.

import { z } from "zod";
import { errorSchema } from "./contracts.js";
import { type ErrorCode, errorBody, statusOf } from "./errors.js";

/** For a person who reads the reference: when does this come? */
const MEANING: Record<ErrorCode, string> = {
  invalid_request: "The request does not fit; `details` says where.",
  unknown_model: "No such model is configured.",
  ordinal_not_committed: "The record is inside an open Request, a batch of calls, a compaction or an interrupt.",
  workspace_not_found: "The Workspace is not the absolute path of an existing directory.",
  images_not_supported: "This model takes no images.",
  file_not_supported: "This model does not take this kind of file.",
  unauthorized: "A valid token is needed.",
  not_allowed: "The operator of this server does not permit that.",
  host_not_allowed: "The `Host` is none that this server answers to.",
  origin_not_allowed: "A page of another origin may not change anything.",
  not_found: "There is nothing at this path.",
  session_not_found: "No such Session, or it is another token's.",
  task_not_found: "The Session has no such Task.",
  approval_not_found: "No such call waits for a decision.",
  not_pending: "No such item waits: it has started, was delivered or was taken back.",
  method_not_allowed: "The path does not take this method.",
  request_timeout: "The request took too long to arrive.",
  task_in_progress: "The Session is busy, and nothing of this was stored.",
  not_running: "No Task is running that takes steering.",
  nothing_to_compact: "No Request of the current context was answered, so there is nothing to summarise.",
  model_unavailable: "The Session's model cannot be used now.",
  workspace_missing: "The Session's Workspace is gone.",
  approval_already_decided: "Somebody else decided first.",
  idempotency_mismatch: "The Idempotency-Key was used with another body.",
  body_too_large: "The body is larger than this server takes.",
  uri_too_long: "A part of the path is too long.",
  unsupported_media_type: "The body must be `application/json`, a Trace `application/x-ndjson`.",
  expectation_failed: "The `Expect` header asks for what this server does not do.",
  too_many_sessions: "The cap on Sessions in memory is reached.",
  too_many_tasks: "The cap on Tasks at once is reached.",
  too_many_queued: "Too much waits in this Session already.",
  too_many_streams: "The cap on open streams is reached.",
  headers_too_large: "The headers are too large.",
  internal: "Something failed inside the server.",
  shutting_down: "The server is shutting down; try again soon.",
  not_ready: "The data directory takes no writes.",
  storage_failed: "A record could not be written, or the Trace could not be read.",
};

const CODES = "x-omnid-codes";
const OPTIONAL_BODY = "x-omnid-optional-body";

/** What every call under `/api` may answer beside its own. */
const COMMON: readonly ErrorCode[] = ["unauthorized", "host_not_allowed", "internal", "shutting_down"];
const WITH_BODY: readonly ErrorCode[] = [
  "invalid_request",
  "origin_not_allowed",
  "body_too_large",
  "unsupported_media_type",
];

/** What every call about one Session may answer that has to have it in memory: its Trace may have to be read for that. */
export const OF_A_SESSION = [
  "session_not_found",
  "too_many_sessions",
  "storage_failed",
] as const satisfies readonly ErrorCode[];

type Answers = Record<number, unknown>;

/** The part of a route's schema that says what it answers: its own answers, its refusals and those all calls share. */
export function answers(own: Answers, ...codes: ErrorCode[]): Documented {
  return document(own, [...codes, ...COMMON]);
}

/** As `answers`, for a call that changes something. */
export function answersToChange(own: Answers, ...codes: ErrorCode[]): Documented {
  return document(own, [...codes, ...WITH_BODY, ...COMMON]);
}

/** As `answers`, for what stands beside the API. */
export function answersBeside(own: Answers, ...codes: ErrorCode[]): Documented {
  return document(own, codes);
}

/** Marks a body that may be left out. */
export const optionalBody: Record<string, true> = { [OPTIONAL_BODY]: true };

/** An answer of another type than JSON. */
export function content(type: string, schema: z.ZodType, description: string): unknown {
  return { description, content: { [type]: { schema } } };
}

/** An answer without a body. */
export const noContent = (description: string) => z.null().describe(description);

type Documented = { response: Answers; [CODES]: ErrorCode[] };

function document(own: Answers, codes: readonly ErrorCode[]): Documented {
  const response = { ...own };
  const unique = [...new Set(codes)];
  for (const status of new Set(unique.map(statusOf))) {
    const meanings = unique.filter((code) => statusOf(code) === status).map((code) => `\`${code}\`: ${MEANING[code]}`);
    response[status] = content("application/json", errorSchema, meanings.join("\n\n"));
  }
  return { response, [CODES]: unique };
}

interface Operation {
  requestBody?: { required?: boolean };
  responses: Record<string, { content?: Record<string, { examples?: Record<string, { value: unknown }> }> }>;
  [CODES]?: ErrorCode[];
  [OPTIONAL_BODY]?: boolean;
}

export interface OpenApiDocument {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, unknown> };
}

/** The document's maker has no words for an optional body or for examples of an answer: marks on the route say it. */
export function finish(operation: Operation): void {
  if (operation[OPTIONAL_BODY] && operation.requestBody) operation.requestBody.required = false;
  for (const code of operation[CODES] ?? []) {
    const media = operation.responses[statusOf(code)]?.content?.["application/json"];
    if (media) media.examples = { ...media.examples, [code]: { value: errorBody(code, plain(MEANING[code])) } };
  }
  delete operation[OPTIONAL_BODY];
  delete operation[CODES];
}

function plain(text: string): string {
  return text.replaceAll("`", "");
}
