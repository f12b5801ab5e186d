// The prompt box, with what goes along and what the Session is to do with it. While the Session works a prompt may wait,
// be told to the model at once, or take the place of what runs.

import { useLayoutEffect, useRef } from "preact/hooks";
import { stop, submit } from "../actions.js";
import { attach, detach } from "../attach.js";
import { setDraft } from "../drafts.js";
import {
  attachments,
  chosenWhenBusy,
  draft,
  isBusy,
  isSending,
  selectedId,
  view,
  type WhenBusy,
  whenBusy,
} from "../state.js";
import { focusPrompt } from "./focus.js";
import { Icon } from "./icons.js";
import { Pickers } from "./pickers.js";

export function Composer() {
  const box = useRef<HTMLTextAreaElement>(null);
  const text = draft.value;
  const isMoving = isSending.value;
  const isEmpty = text.trim() === "" && attachments.value.length === 0;
  useLayoutEffect(() => {
    const node = box.current;
    if (node === null) return;
    node.style.height = "auto";
    node.style.height = `${node.scrollHeight}px`;
  }, [text]);
  const send = async () => {
    if (isEmpty || isMoving) return;
    if (await submit()) {
      document.getElementById("scroller")?.scrollTo({ top: 1e9 });
      focusPrompt();
    }
  };
  return (
    <form
      id="composer"
      class={isBusy.value ? "busy" : ""}
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <Attachments />
      <label class="sr" for="prompt">
        Prompt
      </label>
      <textarea
        id="prompt"
        ref={box}
        rows={1}
        dir="auto"
        placeholder={isBusy.value ? placeholders[whenBusy.value] : "Ask for something"}
        enterkeyhint="send"
        readOnly={isMoving}
        value={text}
        onInput={(event) => setDraft(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          if ((event.ctrlKey || event.metaKey) && isEmpty) return;
          event.preventDefault();
          void send();
        }}
        onPaste={(event) => {
          const files = event.clipboardData?.files;
          if (files === undefined || files.length === 0) return;
          event.preventDefault();
          void attach(files);
        }}
      />
      <div class="composer-tools">
        <AttachButton />
        <Pickers />
        <span class="gap" />
        {isBusy.value && <StopButton />}
        {isBusy.value && <WhenBusyPicker />}
        <button
          id="send"
          type="submit"
          class="primary round"
          disabled={isEmpty || isMoving}
          aria-label={sendLabel()}
          title={sendLabel()}
        >
          <Icon name="send" />
        </button>
      </div>
    </form>
  );
}

const placeholders: Record<WhenBusy, string> = {
  queue: "Ask for the next thing; it waits its turn",
  steer: "Tell the model something while it works",
  interrupt: "Stop what runs and ask for this instead",
};

const sendLabel = (): string => {
  if (!isBusy.value) return "Send";
  return { queue: "Send: it waits its turn", steer: "Send to the running Task", interrupt: "Interrupt and send" }[
    whenBusy.value
  ];
};

function StopButton() {
  return (
    <button
      id="stop"
      type="button"
      class="stop"
      onClick={() => void stop()}
      title="Stop (Ctrl .)"
      aria-keyshortcuts="Control+."
    >
      <Icon name="stop" size={14} />
      Stop
    </button>
  );
}

function WhenBusyPicker() {
  // While only a compaction runs there is no model to tell anything.
  const isCompacting = view.value?.task?.state === "compacting";
  return (
    <select
      id="when-busy"
      class="pick"
      aria-label="What a prompt does while the model works"
      value={whenBusy.value}
      onChange={(event) => {
        const chosen = event.currentTarget.value as WhenBusy;
        chosenWhenBusy.value = new Map([...chosenWhenBusy.value, [selectedId.value ?? "", chosen]]);
      }}
    >
      <option value="queue">Queue</option>
      <option value="steer" disabled={isCompacting}>
        Steer
      </option>
      <option value="interrupt">Interrupt</option>
    </select>
  );
}

function AttachButton() {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button
        type="button"
        class="quiet-icon"
        aria-label="Attach files"
        title="Attach files, or paste or drop them"
        onClick={() => input.current?.click()}
      >
        <Icon name="clip" />
      </button>
      <input
        ref={input}
        id="files"
        class="sr"
        type="file"
        multiple
        tabIndex={-1}
        aria-label="Files to attach"
        onChange={async (event) => {
          const field = event.currentTarget;
          if (field.files !== null) await attach(field.files);
          // The same file may be chosen again.
          field.value = "";
        }}
      />
    </>
  );
}

function Attachments() {
  if (attachments.value.length === 0) return null;
  return (
    <ul class="attachments" aria-label="Attached">
      {attachments.value.map(({ key, name, dataUrl }) => (
        <li key={key}>
          {/^data:image\//.test(dataUrl) ? <img src={dataUrl} alt="" /> : <Icon name="file" size={16} />}
          <span class="name">{name}</span>
          <button type="button" class="quiet-icon" aria-label={`Remove ${name}`} onClick={() => detach(key)}>
            <Icon name="close" size={14} />
          </button>
        </li>
      ))}
    </ul>
  );
}
