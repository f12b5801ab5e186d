// A Session's Channel as an event stream.

import type { App, RouteContext } from "../src/http/context.js";
import { sessionParams, streamQuery } from "../src/http/contracts.js";
import { resumeHeaders } from "../src/http/contracts-headers.js";
import { channelEvent } from "../src/http/contracts-stream.js";
import { answers, content, OF_A_SESSION } from "../src/http/openapi.js";
import { answerHead, isPlace, openStream, resumePoint } from "../src/http/streams.js";
import type { HostedSession } from "../src/session/types.js";
import { useSession } from "./use-session.js";

const URL = "/api/sessions/:id/stream";
const config = { takesQueryToken: true };

export function streamRoutes(app: App, { host, streams }: RouteContext): void {
  // Before GET: the HEAD that Fastify would derive from it opens a stream that nobody reads.
  app.head(URL, { config, schema: { params: sessionParams } }, (request, reply) =>
    useSession(host, request.params.id, request.owner, () => answerHead(reply)),
  );

  app.route({
    method: "GET",
    url: URL,
    config,
    schema: {
      operationId: "streamSession",
      tags: ["Streams"],
      summary: "Follow a Session",
      description:
        "An event without a name is one OmniMessage and carries an id; one named `server_event` says how things stand. " +
        "Reconnect with the last id: no message is missing and none comes twice.",
      params: sessionParams,
      headers: resumeHeaders,
      querystring: streamQuery,
      security: [{ bearer: [] }, { queryToken: [] }, {}],
      ...answers(
        { 200: content("text/event-stream", channelEvent, "Events, until either side ends it") },
        "invalid_request",
        ...OF_A_SESSION,
        "too_many_streams",
      ),
    },
    handler: async (request, reply) => {
      const lastEventId = resumePoint(request, request.query);
      const resumes = isPlace(lastEventId);
      // Before anything is read from the disk for it.
      streams.admit(resumes);
      const open = (session: HostedSession) => {
        const release = streams.take(resumes);
        openStream(request, reply, release, (sink) =>
          session.follow(sink, lastEventId === undefined ? {} : { lastEventId }),
        );
        return reply;
      };
      return useSession(host, request.params.id, request.owner, open, { resumes });
    },
  });
}
