// A Session as a person names it.

import { type Client, OmnidError, type Session } from "../client/index.js";

/** `last` is the one that was active last. @throws OmnidError */
export async function findSession(client: Client, name: string): Promise<Session> {
  if (name !== "last") return client.session(name).get();
  const [last] = (await client.sessions.list({ limit: 1 })).sessions;
  if (last === undefined) throw new OmnidError("session_not_found", "there is no Session yet", { status: 404 });
  return last;
}
