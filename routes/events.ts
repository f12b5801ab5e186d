// One stream for all of a token's Sessions: made, changed, removed.

import type { App, RouteContext } from "../src/http/context.js";
import { eventsQuery } from "../src/http/contracts.js";
import { hostEvent } from "../src/http/contracts-stream.js";
import { answers, content } from "../src/http/openapi.js";
import { answerHead, openStream } from "../src/http/streams.js";

const URL = "/api/events";
const config = { takesQueryToken: true };

export function eventRoutes(app: App, { host, streams }: RouteContext): void {
  app.head(URL, { config }, async (_request, reply) => answerHead(reply));

  app.route({
    method: "GET",
    url: URL,
    config,
    schema: {
      operationId: "streamEvents",
      tags: ["Streams"],
      summary: "Follow the list of Sessions",
      description: "Nothing is replayed: list the Sessions again after a reconnect.",
      querystring: eventsQuery,
      security: [{ bearer: [] }, { queryToken: [] }, {}],
      ...answers(
        { 200: content("text/event-stream", hostEvent, "Events, until either side ends it") },
        "invalid_request",
        "too_many_streams",
      ),
    },
    handler: async (request, reply) => {
      const release = streams.take(false);
      openStream(request, reply, release, (sink) => host.followEvents(sink, request.owner));
      return reply;
    },
  });
}
