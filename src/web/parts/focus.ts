// Where the keyboard is.

export const focusPrompt = (): void => document.getElementById("prompt")?.focus();

export const focusSearch = (): void => document.getElementById("search")?.focus();

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
