// What is asked or shown apart from everything else, one at a time.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Session } from "../../client/index.js";
import { remove, update } from "../actions.js";
import { nameOf } from "../names.js";
import { type Dialog, dialog } from "../state.js";
import { unreachable } from "../unreachable.js";
import { giveBack } from "./focus.js";

export function Dialogs() {
  const shown = dialog.value;
  if (shown === null) return null;
  switch (shown.kind) {
    case "token":
      return <TokenDialog key={String(shown.isWrong)} {...shown} />;
    case "delete":
      return <DeleteDialog session={shown.session} />;
    case "rename":
      return <RenameDialog session={shown.session} />;
    case "picture":
      return (
        <Modal title="Image" class="picture-dialog">
          <img src={shown.url} alt="As it came" />
          <div class="buttons">
            <button type="button" class="plain" onClick={close}>
              Close
            </button>
          </div>
        </Modal>
      );
    case "shortcuts":
      return <ShortcutsDialog />;
    default:
      return unreachable(shown);
  }
}

const close = () => {
  dialog.value = null;
};

interface ModalProps {
  title: string;
  class?: string;
  /** It cannot be closed without an answer. */
  isFirm?: boolean;
  children: ComponentChildren;
}

function Modal({ title, isFirm = false, children, ...rest }: ModalProps) {
  const node = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const own = node.current;
    const from = document.activeElement;
    own?.showModal();
    own?.querySelector<HTMLElement>("[data-first]")?.focus();
    return () => {
      own?.close();
      giveBack(from);
    };
  }, []);
  return (
    <dialog
      ref={node}
      {...rest}
      aria-label={title}
      onCancel={(event) => {
        if (isFirm) event.preventDefault();
      }}
      onClose={({ currentTarget }) => {
        // A second Escape closes it whatever is said above.
        if (!isFirm) close();
        else if (currentTarget.isConnected) currentTarget.showModal();
      }}
    >
      {children}
    </dialog>
  );
}

function TokenDialog({ isWrong, answer }: Extract<Dialog, { kind: "token" }>) {
  const [entered, setEntered] = useState("");
  const [isKept, setKept] = useState(false);
  return (
    <Modal title="Token" isFirm>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (entered.trim() !== "") answer(entered.trim(), isKept);
        }}
      >
        <h2>This server asks for a token</h2>
        <p class="faint" role={isWrong ? "alert" : undefined}>
          {isWrong ? "The server does not know this token. Try another." : "It is one of those in OMNID_TOKENS."}
        </p>
        <label class="field">
          Token
          <input
            data-first
            type="password"
            autocomplete="off"
            required
            value={entered}
            onInput={(event) => setEntered(event.currentTarget.value)}
          />
        </label>
        <label class="check">
          <input type="checkbox" checked={isKept} onChange={(event) => setKept(event.currentTarget.checked)} />
          Keep it in this browser; otherwise it goes with the tab
        </label>
        <div class="buttons">
          <button type="submit" class="primary">
            Continue
          </button>
        </div>
      </form>
    </Modal>
  );
}

function DeleteDialog({ session }: { session: Session }) {
  return (
    <Modal title="Delete this Session?">
      <h2>Delete this Session?</h2>
      <p>
        <strong>{nameOf(session)}</strong>
      </p>
      <p class="faint">Its history goes for good, and so does its Workspace if it is a temporary one.</p>
      <div class="buttons">
        <button type="button" class="plain" data-first onClick={close}>
          Keep it
        </button>
        <button
          type="button"
          class="danger-fill"
          onClick={() => {
            close();
            void remove(session);
          }}
        >
          Delete
        </button>
      </div>
    </Modal>
  );
}

function RenameDialog({ session }: { session: Session }) {
  const [title, setTitle] = useState(session.title ?? "");
  return (
    <Modal title="Rename">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          close();
          void update(session.sessionId, { title: title.trim() === "" ? null : title.trim() });
        }}
      >
        <label class="field">
          Name
          <input
            data-first
            type="text"
            maxLength={1000}
            value={title}
            onInput={(event) => setTitle(event.currentTarget.value)}
          />
        </label>
        <div class="buttons">
          <button type="button" class="plain" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary">
            Rename
          </button>
        </div>
      </form>
    </Modal>
  );
}

const SHORTCUTS: readonly [keys: string, what: string][] = [
  ["Enter", "Send"],
  ["Shift Enter", "New line"],
  ["Ctrl Enter", "Allow the call that waits (the prompt is empty)"],
  ["Ctrl Backspace", "Deny it: goes to the reason, Enter denies"],
  ["Ctrl .", "Stop"],
  ["Ctrl K", "Search Sessions: Enter opens the first, ↓ goes to the list"],
  ["Alt N", "New session"],
  ["/", "Go to the prompt"],
  ["?", "This list (the prompt is empty)"],
];

function ShortcutsDialog() {
  return (
    <Modal title="Keyboard">
      <h2>Keyboard</h2>
      <dl class="shortcuts">
        {SHORTCUTS.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <p class="faint">On a Mac, ⌘ does what Ctrl does here.</p>
      <div class="buttons">
        <button type="button" class="plain" data-first onClick={close}>
          Close
        </button>
      </div>
    </Modal>
  );
}
