// Parsing and checking what comes in: JSON and nothing else, and each problem of a body with its path.

import type { FastifyInstance, FastifySchemaCompiler } from "fastify";
import { z } from "zod";
import { HttpError, type Problem } from "./errors.js";

/** A body full of mistakes is not answered with a body as large. */
const MAX_PROBLEMS = 50;
const MAX_PATH_LENGTH = 200;

/** Checks a part of a request with its zod schema. */
export const validatorCompiler: FastifySchemaCompiler<z.ZodType> = ({ schema, httpPart }) => {
  const part = httpPart === "querystring" ? "query" : (httpPart ?? "request");
  return (data: unknown) => {
    const parsed = schema.safeParse(data);
    if (parsed.success) return { value: parsed.data };
    const details = parsed.error.issues.flatMap((issue) => problemsOf(issue, [])).slice(0, MAX_PROBLEMS);
    return { error: new HttpError("invalid_request", `the ${part} does not fit: ${summary(details)}`, { details }) };
  };
};

/** As `validatorCompiler`, for a body that is looked at as it comes. */
export const unlessBody: FastifySchemaCompiler<z.ZodType> = (part) =>
  part.httpPart === "body" ? (value) => ({ value }) : validatorCompiler(part);

const checkNothing = validatorCompiler({ schema: z.strictObject({}), method: "", url: "", httpPart: "body" });

/** Turns away what a body says where a call has nothing to say. */
export function refuseFields(body: unknown): void {
  const { error } = checkNothing(body) as { error?: Error };
  if (error !== undefined) throw error;
}

/** Lets `application/json` in and turns away every other type. */
export function acceptOnlyJson(app: FastifyInstance): void {
  const parseText = app.getDefaultJsonParser("error", "error");
  const decoder = new TextDecoder("utf-8", { fatal: true });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>("application/json", { parseAs: "buffer" }, (request, bytes, done) => {
    const charset = /;\s*charset="?([^";\s]+)/i.exec(request.headers["content-type"] ?? "")?.[1];
    if (charset !== undefined && !/^utf-?8$/i.test(charset)) {
      return done(new HttpError("unsupported_media_type", "JSON is UTF-8"));
    }
    if (!/^(identity)?$/i.test(request.headers["content-encoding"] ?? "")) {
      return done(new HttpError("unsupported_media_type", "the body must not be compressed"));
    }
    // Many clients send their usual content type with no body; where a body is needed the schema says so.
    if (bytes.length === 0) return done(null, undefined);
    let text: string;
    try {
      text = decoder.decode(bytes);
    } catch {
      // The decoder says no more than that.
      return done(new HttpError("invalid_request", "the body is not UTF-8"));
    }
    void parseText(request, text, (error, value) => {
      if (error) done(new HttpError("invalid_request", "the body is not well-formed JSON"));
      else done(null, value);
    });
  });
}

function problemsOf(issue: z.core.$ZodIssue, above: readonly PropertyKey[]): Problem[] {
  const path = [...above, ...issue.path];
  if (issue.code === "unrecognized_keys") {
    return issue.keys.slice(0, MAX_PROBLEMS).map((key) => ({ path: dotted([...path, key]), message: "unknown field" }));
  }
  if (issue.code === "invalid_union" && issue.errors.length > 0) {
    return nearest(issue.errors).flatMap((each) => problemsOf(each, path));
  }
  return [{ path: dotted(path), message: issue.message }];
}

// Of the forms that a value could have had, the one meant is the one that fits furthest down.
function nearest(branches: readonly (readonly z.core.$ZodIssue[])[]): readonly z.core.$ZodIssue[] {
  const isOfType = (issues: readonly z.core.$ZodIssue[]) =>
    issues.every((issue) => issue.code !== "invalid_type" || issue.path.length > 0);
  return branches.find(isOfType) ?? branches[0] ?? [];
}

function dotted(path: readonly PropertyKey[]): string {
  return path.map(String).join(".").slice(0, MAX_PATH_LENGTH);
}

function summary(details: readonly Problem[]): string {
  const [first] = details;
  if (first === undefined) return "it is malformed";
  const more = details.length > 1 ? ` (and ${details.length - 1} more)` : "";
  return `${first.path === "" ? "" : `${first.path}: `}${first.message}${more}`;
}
