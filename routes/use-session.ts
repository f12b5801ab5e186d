import { HttpError } from "../src/http/errors.js";
import type { HostedSession, Owner, SessionHost } from "../src/session/types.js";

/**
 * Finds a Session, brings it into memory, and keeps it there until `work` is done with it.
 * @param resumes the call goes on with a stream: the cap on Sessions in memory does not hold for it
 * @throws HttpError when there is none, or when it is another token's (no answer tells which), and where there is no room.
 */
export async function useSession<T>(
  host: SessionHost,
  id: string,
  owner: Owner,
  work: (session: HostedSession) => T | Promise<T>,
  { resumes = false }: { resumes?: boolean } = {},
): Promise<T> {
  if (!resumes && !host.hasRoomFor(id, owner)) {
    throw new HttpError("too_many_sessions", "as many Sessions are in memory and in use as may be");
  }
  return host.use(id, owner, (session) => {
    if (session === undefined) throw new HttpError("session_not_found", "there is no such Session");
    return work(session);
  });
}
