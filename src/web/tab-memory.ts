// What this tab keeps over a reload. It goes with the tab, and no other tab sees it.

import { basePath } from "./base-path.js";

/** @returns undefined where nothing was kept, or it cannot be read */
export function recalled(name: string): unknown {
  try {
    return JSON.parse(sessionStorage.getItem(keyOf(name)) ?? "null") ?? undefined;
  } catch {
    return undefined; // the browser allows no storage, or another version wrote this
  }
}

/** Keeps a value as JSON; undefined takes it out. */
export function remember(name: string, value: unknown): void {
  try {
    if (value === undefined) sessionStorage.removeItem(keyOf(name));
    else sessionStorage.setItem(keyOf(name), JSON.stringify(value));
  } catch {
    // No storage, or no room in it: this is kept for as long as the page is open.
  }
}

// Another server of the same origin has Sessions of its own.
const keyOf = (name: string): string => `omnid${basePath(location.pathname)}-${name}`;
