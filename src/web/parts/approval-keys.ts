// When a key or a click is an answer to a question, and to which: what was meant for something else allows nothing.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { attachments, draft, isDrawerOpen } from "../state.js";

/** A question counts as read once it has been on screen, at its place, for so long. */
const READ_MS = 400;

/**
 * Whether a question may be answered yet. What was pressed before was meant for the one that stood there.
 * @param place changes whenever the question may have moved
 */
export function useRead(place: string): { isRead: boolean; mayAnswer: (event: Event) => boolean } {
  const readAt = useRef(Number.POSITIVE_INFINITY);
  const [isRead, setRead] = useState(false);
  useLayoutEffect(() => {
    readAt.current = Number.POSITIVE_INFINITY;
    setRead(false);
    let timer: ReturnType<typeof setTimeout> | undefined;
    // A hidden tab has no frames, and nobody reads it.
    const frame = requestAnimationFrame(() => {
      timer = setTimeout(() => {
        readAt.current = performance.now();
        setRead(true);
      }, READ_MS);
    });
    return () => {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
    };
  }, [place]);
  return { isRead, mayAnswer: (event) => event.timeStamp >= readAt.current };
}

interface Keys {
  /** The others are answered with their own buttons. */
  isFirst: boolean;
  panel: { readonly current: HTMLElement | null };
  allow: (event: KeyboardEvent) => void;
  deny: () => void;
}

/** Ctrl+Enter allows, Ctrl+Backspace asks for the reason of a denial; wherever the keyboard rests, and nowhere else. */
export function useShortcuts(keys: Keys): void {
  const latest = useRef(keys);
  latest.current = keys;
  const { isFirst } = keys;
  useEffect(() => {
    if (!isFirst) return;
    const onKey = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.isComposing) return;
      if (event.key !== "Enter" && event.key !== "Backspace") return;
      const { panel, allow, deny } = latest.current;
      if (isElsewhere() || !restsAt(event.target, panel.current)) return;
      event.preventDefault();
      if (event.repeat) return;
      if (event.key === "Enter") allow(event);
      else deny();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [isFirst]);
}

/** A prompt that is being written keeps its keys, and so does what is open above the page. */
const isElsewhere = (): boolean =>
  draft.peek().trim() !== "" ||
  attachments.peek().length > 0 ||
  isDrawerOpen.peek() ||
  document.querySelector("dialog[open]") !== null;

/** The prompt, the page, or the question itself but for its fields and the buttons that do not allow it. */
function restsAt(target: EventTarget | null, panel: HTMLElement | null): boolean {
  if (!(target instanceof Element)) return false;
  if (target === document.body || target.id === "prompt") return true;
  if (panel?.contains(target) !== true) return false;
  const control = target.closest("button, input, select, textarea, summary, a");
  return control === null || control.classList.contains("allow");
}
