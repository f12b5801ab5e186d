// Where the keyboard is. What goes while it rests there hands it on: it never falls to the page as a whole.

import { useLayoutEffect, useRef } from "preact/hooks";

export const focusPrompt = (): void => document.getElementById("prompt")?.focus();

/** On a phone the prompt can be reached once the list is closed. */
export const focusPromptSoon = (): void => void requestAnimationFrame(focusPrompt);

/** To write on behind what stands there. */
export function focusPromptEnd(): void {
  focusPrompt();
  const box = document.getElementById("prompt");
  if (box instanceof HTMLTextAreaElement) box.setSelectionRange(box.value.length, box.value.length);
}

/** Hands the keyboard on where what it rests in goes. */
export function useHandOn<E extends HTMLElement>(next: (gone: E) => void): { current: E | null } {
  const own = useRef<E>(null);
  useLayoutEffect(() => {
    const node = own.current;
    return () => {
      if (node?.contains(document.activeElement)) next(node);
    };
  }, []);
  return own;
}

export const focusSearch = (): void => document.getElementById("search")?.focus();

/** Home and End go to the first and the last, but where they move in a text. */
export function moveToEnds(event: KeyboardEvent, all: readonly HTMLElement[]): void {
  const at = { Home: 0, End: -1 }[event.key];
  if (at === undefined || isTyping(event.target)) return;
  event.preventDefault();
  all.at(at)?.focus();
}

/** The arrows go from one to the next, and from the last to the first. */
export function moveByArrow(event: KeyboardEvent, all: readonly HTMLElement[]): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined || all.length === 0) return;
  event.preventDefault();
  const at = all.indexOf(document.activeElement as HTMLElement);
  all[(Math.max(at, step < 0 ? 0 : -1) + step + all.length) % all.length]?.focus();
}

/** Typing is going on there: a single letter is no shortcut. */
export const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
