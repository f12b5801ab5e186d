// The list of Sessions, kept current by the server's events. One tab holds the stream and tells the others.

import { type HostEvent, type Session, withHostEvent } from "../client/index.js";
import { BASE, background, client, reachable, token } from "./connect.js";
import { forgetDraft } from "./drafts.js";
import { moreSessions, sessions } from "./state.js";
import { inOneTab, scopeOf } from "./tab-locks.js";

const PAGE = 200;

async function readList(): Promise<void> {
  const page = await client.sessions.list({ limit: PAGE, archived: true });
  sessions.value = withOlder(page.sessions);
  if (moreSessions.value === undefined) moreSessions.value = page.nextCursor ?? null;
}

/** What was loaded beyond the first page stays behind it. */
function withOlder(first: readonly Session[]): readonly Session[] {
  const last = first.at(-1);
  if (last === undefined || first.length < PAGE) return first;
  const ids = new Set(first.map(({ sessionId }) => sessionId));
  const older = sessions.value.filter((each) => !ids.has(each.sessionId) && each.lastActiveAt <= last.lastActiveAt);
  return [...first, ...older];
}

export async function loadMoreSessions(): Promise<void> {
  const cursor = moreSessions.value;
  if (typeof cursor !== "string") return;
  const page = await client.sessions.list({ limit: PAGE, archived: true, cursor });
  const ids = new Set(sessions.value.map(({ sessionId }) => sessionId));
  sessions.value = [...sessions.value, ...page.sessions.filter(({ sessionId }) => !ids.has(sessionId))];
  moreSessions.value = page.nextCursor ?? null;
}

export const takeHostEvent = (event: HostEvent): void => {
  if (event.type === "session_deleted") forgetDraft(event.sessionId);
  sessions.value = withHostEvent(sessions.value, event, true);
};

/** Follows the list for as long as the page lives. */
export async function followList(): Promise<void> {
  // The first call is also the one that asks for a token.
  await background(readList);
  const scope = `omnid-events-${BASE}-${await scopeOf(token())}`;
  const tabs = new BroadcastChannel(scope);
  tabs.onmessage = ({ data }: MessageEvent<HostEvent | { type: "listed" }>) => {
    if (data.type === "listed") {
      reachable();
      void background(readList);
    } else takeHostEvent(data);
  };
  await inOneTab(scope, async () => {
    const following = client.sessions.follow({
      archived: true,
      limit: PAGE,
      onEvent: (event) => {
        takeHostEvent(event);
        tabs.postMessage(event);
      },
    });
    let wasLive = false;
    following.subscribe(() => {
      const isLive = following.view.connection.status === "live";
      if (isLive && !wasLive) {
        reachable();
        sessions.value = withOlder(following.view.sessions);
        tabs.postMessage({ type: "listed" });
      }
      wasLive = isLive;
    });
    const back = () => {
      if (document.visibilityState === "visible") following.retryNow();
    };
    addEventListener("online", back);
    document.addEventListener("visibilitychange", back);
    await following.closed;
  });
}
