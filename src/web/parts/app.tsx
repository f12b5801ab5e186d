// The page as a whole.

import { useEffect, useState } from "preact/hooks";
import { open, stop } from "../actions.js";
import { attach } from "../attach.js";
import { nameOf } from "../names.js";
import { announcement, current, dialog, draft, error, isBusy, isDrawerOpen, selectedId, sessions } from "../state.js";
import { ApprovalBar } from "./approval-bar.js";
import { Composer } from "./composer.js";
import { Conversation } from "./conversation.js";
import { Dialogs } from "./dialogs.js";
import { focusPrompt, focusSearch, isTyping } from "./focus.js";
import { Guarded } from "./guarded.js";
import { Header, LinkWhy } from "./header.js";
import { QueueList } from "./queue-list.js";
import { closeDrawer, Scrim, Sidebar } from "./sidebar.js";
import { StatusLine } from "./status-line.js";

export function App() {
  useDocumentTitle();
  useEffect(() => {
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const isDrawer = isDrawerOpen.value;
  return (
    <div class={isDrawer ? "page drawer-open" : "page"}>
      <button type="button" class="skip" onClick={focusPrompt}>
        Skip to the prompt
      </button>
      <Sidebar />
      <Scrim />
      <Main isInert={isDrawer} />
      <p id="announcer" class="sr" role="status" aria-live="polite">
        {announcement.value}
      </p>
      <Dialogs />
    </div>
  );
}

function Main({ isInert }: { isInert: boolean }) {
  const [isOver, setOver] = useState(false);
  const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") === true;
  return (
    <main
      id="main"
      class={isOver ? "drop" : ""}
      // The keyboard stays in the open list.
      inert={isInert}
      onDragOver={(event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false);
      }}
      onDrop={(event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        setOver(false);
        void attach(event.dataTransfer?.files ?? []);
      }}
    >
      <Header />
      <LinkWhy />
      <div class="talk">
        {/* A fault in one Session ends with it. */}
        <Guarded key={selectedId.value ?? ""} instead={<p class="empty">This Session cannot be shown.</p>}>
          <Conversation />
        </Guarded>
      </div>
      <div id="dock">
        <div class="column">
          <ApprovalBar />
          <QueueList />
          {error.value !== "" && (
            <p id="error" role="alert">
              {error.value}
            </p>
          )}
          <Composer />
          <StatusLine />
        </div>
      </div>
    </main>
  );
}

function useDocumentTitle(): void {
  const waiting = sessions.value.reduce((sum, each) => sum + each.pendingApprovals, 0);
  const name = current.value === null ? "omnid" : `${nameOf(current.value)} – omnid`;
  const title = `${waiting > 0 ? `(${waiting}) ` : ""}${name}`;
  useEffect(() => {
    document.title = title;
  }, [title]);
}

function onKey(event: KeyboardEvent): void {
  const isControl = event.ctrlKey || event.metaKey;
  if (document.querySelector("dialog[open]") !== null) return;
  if (event.key === "Escape") closeDrawer();
  if (isControl && event.key.toLowerCase() === "k") {
    event.preventDefault();
    isDrawerOpen.value = matchMedia("(max-width: 767px)").matches;
    // At once, so that the next key is typed there; where the list had to be opened, it can be reached a frame later.
    focusSearch();
    if (isDrawerOpen.value) requestAnimationFrame(focusSearch);
  } else if (isControl && event.key === ".") {
    if (isBusy.peek()) void stop();
  } else if (event.altKey && event.key.toLowerCase() === "n") {
    event.preventDefault();
    open(null);
    focusPrompt();
  } else if (!isControl && !event.altKey) {
    const isFree = !isTyping(event.target);
    if (event.key === "?" && (isFree || isEmptyPrompt(event.target))) {
      event.preventDefault();
      dialog.value = { kind: "shortcuts" };
    } else if (event.key === "/" && isFree) {
      event.preventDefault();
      focusPrompt();
    }
  }
}

/** The keyboard rests there, so that is where one asks for help. */
const isEmptyPrompt = (target: EventTarget | null): boolean =>
  target instanceof HTMLTextAreaElement && target.id === "prompt" && draft.peek() === "" && !target.readOnly;
