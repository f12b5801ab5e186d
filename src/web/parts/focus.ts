// Where the keyboard is. What goes while it rests there hands it on: it never falls to the page as a whole.

import { useLayoutEffect, useRef } from "preact/hooks";

export const promptBox = (): HTMLElement | null => document.getElementById("prompt");

export const focusPrompt = (): void => promptBox()?.focus();

/** On a phone the prompt can be reached once the list is closed. */
export const focusPromptSoon = (): void => void requestAnimationFrame(focusPrompt);

/** To write on behind what stands there. */
export function focusPromptEnd(): void {
  focusPrompt();
  const box = document.getElementById("prompt");
  if (box instanceof HTMLTextAreaElement) box.setSelectionRange(box.value.length, box.value.length);
}

type Heir = HTMLElement | null | undefined;

/** Who gets the keyboard that comes back to something that has gone meanwhile, from a dialog. */
const heirs = new WeakMap<Element, HTMLElement>();

/** Hands the keyboard on where what it rests in goes. @param heirOf asked while it is still there */
export function useHandOn<E extends HTMLElement>(heirOf: (gone: E) => Heir): { current: E | null } {
  const own = useRef<E>(null);
  useLayoutEffect(() => {
    const node = own.current;
    return () => {
      const heir = node === null ? undefined : heirOf(node);
      if (node === null || !heir) return;
      if (node.contains(document.activeElement)) heir.focus();
      else heirs.set(node, heir);
    };
  }, []);
  return own;
}

/** Gives the keyboard back to where it was, or to whoever has the place of what is gone. */
export function giveBack(to: Element | null): void {
  let place: Heir = to instanceof HTMLElement ? to : undefined;
  while (place && !place.isConnected) {
    // Of all that has gone with it the outermost says.
    let heir: Heir;
    for (let node: Element | null = place; node !== null; node = node.parentElement) heir = heirs.get(node) ?? heir;
    place = heir;
  }
  (place ?? promptBox())?.focus();
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
