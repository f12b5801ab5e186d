// The list of Sessions, newest activity first, with how each stands.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Session } from "../../client/index.js";
import { importTrace, open } from "../actions.js";
import { attempt, background } from "../connect.js";
import { loadMoreSessions } from "../list.js";
import { nameOf } from "../names.js";
import { whenText } from "../standing.js";
import { isDrawerOpen, moreSessions, now, selectedId, sessions } from "../state.js";
import { focusPromptSoon, moveByArrow, useHandOn } from "./focus.js";
import { Icon } from "./icons.js";
import { SessionMenu } from "./session-menu.js";
import { ThemeButton } from "./theme-button.js";

export function Sidebar() {
  const [query, setQuery] = useState("");
  const [isArchive, setArchive] = useState(false);
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  // A search looks everywhere.
  const shown = sessions.value.filter(
    (session) => (words.length > 0 || session.archived === isArchive) && matches(session, words),
  );
  // What is searched for may be on a page that was not read yet.
  const isSearch = words.length > 0;
  const more = moreSessions.value;
  useEffect(() => {
    if (isSearch && typeof more === "string") void background(loadMoreSessions);
  }, [isSearch, more]);
  const hasArchived = sessions.value.some(({ archived }) => archived);
  return (
    <aside
      id="sidebar"
      aria-label="Sessions"
      onKeyDown={(event) => {
        // A menu of a row has arrows of its own.
        if (!event.defaultPrevented) moveByRows(event);
      }}
    >
      <div class="brand">
        <img src="./icon.svg" alt="" width="24" height="24" />
        <strong>omnid</strong>
        <button
          type="button"
          class="quiet-icon phone-only"
          id="close-drawer"
          aria-label="Close the list"
          onClick={closeDrawer}
        >
          <Icon name="close" />
        </button>
      </div>
      <button
        id="new-session"
        type="button"
        onClick={() => {
          open(null);
          focusPromptSoon();
        }}
      >
        <Icon name="plus" size={16} /> New session
      </button>
      <label class="search">
        <Icon name="search" size={15} />
        <input
          id="search"
          type="search"
          placeholder="Search"
          aria-label="Search Sessions"
          aria-keyshortcuts="Control+K"
          value={query}
          onInput={(event) => setQuery(event.currentTarget.value)}
          onKeyDown={(event) => {
            const first = shown[0];
            if (event.key !== "Enter" || event.isComposing || first === undefined) return;
            event.preventDefault();
            setQuery("");
            open(first.sessionId);
            focusPromptSoon();
          }}
        />
        <kbd>Ctrl K</kbd>
      </label>
      <nav aria-label={isArchive ? "Archived Sessions" : "Sessions"}>
        <ul id="sessions">
          {shown.map((session) => (
            <Row key={session.sessionId} session={session} />
          ))}
        </ul>
        {shown.length === 0 && <p class="faint none">{emptyText(words.length > 0, isArchive)}</p>}
        {typeof more === "string" && !isSearch && (
          <button type="button" class="plain" onClick={() => void attempt(loadMoreSessions)}>
            Older Sessions
          </button>
        )}
      </nav>
      <div class="foot">
        {(hasArchived || isArchive) && (
          <button
            type="button"
            class="plain"
            id="archive"
            aria-label={isArchive ? "Back to Sessions" : undefined}
            aria-pressed={isArchive}
            onClick={() => setArchive(!isArchive)}
          >
            {isArchive ? "Back" : "Archived"}
          </button>
        )}
        <ImportButton />
        <a href="./docs">API</a>
        <span class="gap" />
        <ThemeButton />
      </div>
    </aside>
  );
}

/** Up and down through the search field and the rows. */
function moveByRows(event: KeyboardEvent & { currentTarget: HTMLElement }): void {
  const all = [...event.currentTarget.querySelectorAll<HTMLElement>("#search, .row-session > button:first-child")];
  if (all.includes(event.target as HTMLElement)) moveByArrow(event, all);
}

function ImportButton() {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button
        type="button"
        class="plain"
        title="A Session of a downloaded Trace"
        onClick={() => input.current?.click()}
      >
        Import
      </button>
      <input
        ref={input}
        class="sr"
        type="file"
        accept=".jsonl,.ndjson,application/x-ndjson"
        tabIndex={-1}
        aria-label="Trace to import"
        onChange={async ({ currentTarget: field }) => {
          const file = field.files?.[0];
          if (file !== undefined) await importTrace(file);
          field.value = "";
        }}
      />
    </>
  );
}

const emptyText = (isSearch: boolean, isArchive: boolean): string =>
  isSearch ? "Nothing found." : isArchive ? "Nothing is archived." : "No Sessions yet.";

function matches(session: Session, words: readonly string[]): boolean {
  const { sessionId, provider, modelId, workspace } = session;
  const text = `${nameOf(session)} ${sessionId} ${provider}/${modelId} ${workspace}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

function Row({ session }: { session: Session }) {
  const isCurrent = session.sessionId === selectedId.value;
  const { text, tone } = standingOf(session);
  const own = useHandOn<HTMLLIElement>(nextRow);
  return (
    <li ref={own} class={isCurrent ? "row-session current" : "row-session"}>
      <button
        type="button"
        aria-current={isCurrent ? "page" : undefined}
        title={`Begun ${new Date(session.createdAt).toLocaleString()}`}
        onClick={() => open(session.sessionId)}
      >
        <span class="name">{nameOf(session)}</span>
        <span class="line">
          <span class="model">
            {session.provider}/{session.modelId}
          </span>
          <span class={`standing ${tone}`}>{text}</span>
        </span>
      </button>
      <SessionMenu session={session} />
    </li>
  );
}

/** The one below, the one above, or where there is none the button above the list. */
function nextRow(gone: HTMLElement): HTMLElement | null {
  const next = gone.nextElementSibling ?? gone.previousElementSibling;
  return next?.querySelector("button") ?? document.getElementById("new-session");
}

function standingOf(session: Session): { text: string; tone: string } {
  if (session.pendingApprovals > 0) return { text: "needs approval", tone: "ask" };
  if (session.state === "compacting") return { text: "compacting", tone: "busy" };
  if (session.state === "running") return { text: "running", tone: "busy" };
  return { text: whenText(session.lastActiveAt, now.value), tone: "" };
}

export function closeDrawer(): void {
  if (!isDrawerOpen.value) return;
  isDrawerOpen.value = false;
}

/** What lies beside the open list, on a phone: a tap on it closes the list. */
export function Scrim() {
  const node = useRef<HTMLButtonElement>(null);
  const isOpen = isDrawerOpen.value;
  const wasOpen = useRef(false);
  useEffect(() => {
    if (isOpen) document.getElementById("close-drawer")?.focus();
    // Whoever closed it may have gone to the prompt.
    else if (wasOpen.current && document.getElementById("main")?.contains(document.activeElement) !== true)
      document.getElementById("open-drawer")?.focus();
    wasOpen.current = isOpen;
  }, [isOpen]);
  return (
    <button
      ref={node}
      id="scrim"
      type="button"
      hidden={!isOpen}
      tabIndex={-1}
      aria-label="Close the list"
      onClick={closeDrawer}
    />
  );
}
