// A Session as a person names it.

import { type CallOptions, type Client, OmnidError, type Session } from "../client/index.js";

/** `last` is the one that was active last. @throws OmnidError, or the reason of the signal */
export async function findSession(client: Client, name: string, call: CallOptions): Promise<Session> {
  if (name !== "last") return client.session(name).get(call);
  const [last] = (await client.sessions.list({ limit: 1 }, call)).sessions;
  if (last === undefined) throw new OmnidError("session_not_found", "there is no Session yet", { status: 404 });
  return last;
}
