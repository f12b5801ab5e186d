// Above the conversation: its name, how the connection fares, and what can be done with it as a whole.

import { nameOf } from "../names.js";
import { connectionText } from "../standing.js";
import { connection, current, isDrawerOpen, isOnline, now, selectedId } from "../state.js";
import { reconnectNow } from "../watch.js";
import { Icon } from "./icons.js";
import { SessionMenu } from "./session-menu.js";

export function Header() {
  const session = current.value;
  const title = session !== null ? nameOf(session) : selectedId.value === null ? "New session" : "Session";
  return (
    <header id="bar">
      <button
        id="open-drawer"
        type="button"
        class="quiet-icon phone-only"
        aria-label="Sessions"
        aria-expanded={isDrawerOpen.value}
        aria-controls="sidebar"
        onClick={() => {
          isDrawerOpen.value = true;
        }}
      >
        <Icon name="list" />
      </button>
      <div class="heading">
        <h1 id="title">{title}</h1>
        {session !== null && (
          <p id="subtitle" class="faint" title={session.workspace}>
            {session.workspace}
          </p>
        )}
      </div>
      {session?.archived && <p id="archived">Archived</p>}
      <Link />
      {session !== null && <SessionMenu session={session} isOpenOne />}
    </header>
  );
}

function Link() {
  const state = connection.value;
  if (state === null) return null;
  const { text, tone, more } = connectionText(state, now.value, isOnline.value);
  return (
    <div class="link-box">
      <p id="link" class={tone} title={more}>
        {text}
      </p>
      {state.status === "waiting" && (
        <button id="retry-now" type="button" class="plain" onClick={reconnectNow}>
          Now
        </button>
      )}
    </div>
  );
}

/** Why there is no connection: what is shown is how it stood. */
export function LinkWhy() {
  const state = connection.value;
  if (state?.status !== "waiting") return null;
  const { more } = connectionText(state, now.value, isOnline.value);
  return <p id="link-why">{more} This is how it stood.</p>;
}
