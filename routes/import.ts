// A Session of an uploaded Trace, the only body that is not JSON: it is read as it comes and never held whole.

import { z } from "zod";
import { bodyOf } from "../src/http/body-deadline.js";
import type { App, RouteContext } from "../src/http/context.js";
import { sessionSchema } from "../src/http/contracts.js";
import { importQuery } from "../src/http/contracts-fork.js";
import { HttpError, orThrow } from "../src/http/errors.js";
import { answersToChange } from "../src/http/openapi.js";
import { unlessBody } from "../src/http/validation.js";
import { answerMade } from "./sessions.js";

const MAX_BYTES = 1024 ** 3;
/** A record of ours is at most a prompt of the largest body, or what a model says in one go. */
const MIN_LINE_LIMIT = 64 * 1024 ** 2;
/** A gigabyte over a slow line takes its time; silence does not. */
const UPLOAD_TIMEOUT_MS = 2 * 60 * 60_000;
const SILENCE_MS = 60_000;
const TYPE = "application/x-ndjson";

/** In a scope of its own, so that no other call takes this type and this one takes no other. */
export async function importRoutes(app: App, context: RouteContext): Promise<void> {
  await app.register(async (scope: App) => {
    scope.setValidatorCompiler(unlessBody);
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", (_request, _payload, done) => done(wrongType()));
    scope.addContentTypeParser(TYPE, ({ headers }, payload, done) => {
      const isPlain = /^(identity)?$/i.test(headers["content-encoding"] ?? "");
      if (!isPlain) done(new HttpError("unsupported_media_type", "the body must not be compressed"));
      else if (Number(headers["content-length"]) > MAX_BYTES) done(tooLarge());
      else done(null, payload);
    });
    importRoute(scope, context);
  });
}

function importRoute(app: App, { host, config, clock, recorder }: RouteContext): void {
  /** @throws HttpError for what is too large, and when the server begins to drain. */
  async function* upload(raw: Parameters<typeof bodyOf>[0]): AsyncGenerator<Uint8Array, void, void> {
    let size = 0;
    for await (const chunk of bodyOf(raw, { clock, recorder, silenceMs: SILENCE_MS })) {
      size += chunk.length;
      if (size > MAX_BYTES) throw tooLarge();
      if (host.draining) throw new HttpError("shutting_down", "the server is shutting down");
      yield chunk;
    }
  }

  app.route({
    method: "POST",
    url: "/api/sessions/import",
    config: { bodyTimeoutMs: UPLOAD_TIMEOUT_MS },
    schema: {
      operationId: "importSession",
      tags: ["Sessions"],
      summary: "Import a Trace",
      description:
        "A new Session of a downloaded Trace (JSON Lines, up to 1 GiB), with an id, folder and Workspace of its own and everything else equal. A file with a line that is no record is refused, and `details` names the lines; with `damaged=skip` they are left out, as a restart would. What has no end in the file is closed as after a restart. A model that is not configured here is no obstacle: its history can be read, and prompts answer `model_unavailable`.",
      querystring: importQuery,
      consumes: [TYPE],
      body: z.string().describe("A Trace, as `GET /sessions/:id/trace` gives it."),
      ...answersToChange(
        { 201: sessionSchema.describe("The new Session") },
        "request_timeout",
        "too_many_sessions",
        "storage_failed",
      ),
    },
    handler: async (request, reply) => {
      // Without a type and without a body there is nothing to parse.
      if (!request.body) throw wrongType();
      const source = {
        chunks: upload(request.raw),
        damaged: request.query.damaged ?? "refuse",
        maxLineBytes: Math.max(MIN_LINE_LIMIT, 2 * config.bodyLimit),
      };
      return answerMade(reply, orThrow(await host.importTrace(source, request.owner)).view());
    },
  });
}

const wrongType = () => new HttpError("unsupported_media_type", `the body must be ${TYPE}`);
const tooLarge = () => new HttpError("body_too_large", `a Trace is at most ${MAX_BYTES} bytes`);
