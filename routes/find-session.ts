import { HttpError } from "../src/http/errors.js";
import type { HostedSession, Owner, SessionHost } from "../src/session/types.js";

/** @returns the Session. @throws HttpError when there is none, or when it is another token's: no answer tells which. */
export async function findSession(host: SessionHost, id: string, owner: Owner): Promise<HostedSession> {
  const session = await host.find(id, owner);
  if (session === undefined) throw new HttpError("session_not_found", "there is no such Session");
  return session;
}
