// Copies a text and says that it did.

import { useState } from "preact/hooks";
import { Icon } from "./icons.js";

const SHOWN_MS = 1_500;

export function CopyButton({ text, label }: { text: () => string; label: string }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    if (!(await copied(text()))) return;
    setDone(true);
    setTimeout(() => setDone(false), SHOWN_MS);
  };
  return (
    <button type="button" class="quiet-icon" title={label} aria-label={isDone ? "Copied" : label} onClick={copy}>
      <Icon name={isDone ? "check" : "copy"} size={15} />
    </button>
  );
}

/** @returns whether it is in the clipboard; a page over plain HTTP has none of its own. */
export async function copied(text: string): Promise<boolean> {
  if (navigator.clipboard !== undefined) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Refused by the browser: the older way may be open.
    }
  }
  const box = document.createElement("textarea");
  box.value = text;
  box.className = "sr";
  document.body.append(box);
  box.select();
  const isDone = document.execCommand("copy");
  box.remove();
  return isDone;
}
