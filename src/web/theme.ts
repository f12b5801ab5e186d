// Light and dark. Only a choice of its own is kept; without one the system's holds.

import { type Theme, theme } from "./state.js";

const KEY = "omnid-theme";
export const THEMES: readonly Theme[] = ["auto", "light", "dark"];

export function loadTheme(): void {
  const kept = localStorage.getItem(KEY);
  theme.value = THEMES.find((each) => each === kept) ?? "auto";
  show();
}

export function chooseTheme(next: Theme): void {
  theme.value = next;
  if (next === "auto") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, next);
  show();
}

function show(): void {
  const { value } = theme;
  if (value === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = value;
}
