// Where the keyboard is.

export const focusPrompt = (): void => document.getElementById("prompt")?.focus();

/** Typing is going on there: a single letter is no shortcut. */
export const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
