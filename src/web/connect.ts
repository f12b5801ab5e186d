// The client that the page talks through, and the token, which is kept where the person chose.

import { createClient, OmnidError } from "../client/index.js";
import { basePath } from "./base-path.js";
import { refusalText, sentence } from "./notices.js";
import { dialog, error } from "./state.js";
import { visibleText } from "./visible-text.js";

/** Where the page is, without the slash at its end: a proxy may serve it below a path of its own. */
export const BASE = basePath(location.pathname);

// Another server of the same origin has tokens of its own.
const TOKEN_KEY = `omnid${BASE}-token`;

export const token = (): string => sessionStorage.getItem(TOKEN_KEY) ?? localStorage.getItem(TOKEN_KEY) ?? "";

export const client = createClient({ baseUrl: BASE, token, renewToken: askToken });

/** Asks until something is entered: nothing can be done here without. */
function askToken(refused: string | undefined): Promise<string> {
  return new Promise((resolve) => {
    dialog.value = {
      kind: "token",
      isWrong: refused !== undefined && refused !== "",
      answer: (entered, keep) => {
        dialog.value = null;
        sessionStorage.removeItem(TOKEN_KEY);
        localStorage.removeItem(TOKEN_KEY);
        (keep ? localStorage : sessionStorage).setItem(TOKEN_KEY, entered);
        resolve(entered);
      },
    };
  });
}

/** What went wrong, as a sentence for the page. */
export function inWords(cause: unknown): string {
  if (cause instanceof OmnidError) return visibleText(refusalText(cause.message, cause.details));
  return visibleText(cause instanceof Error ? sentence(cause.message) : String(cause));
}

/** Does what a person asked for; why it failed is shown. @returns whether it was done */
export function attempt(work: () => Promise<unknown>): Promise<boolean> {
  error.value = "";
  return background(work);
}

/** What is shown because the server could not be reached. */
let lost: string | undefined;

/** The server answers again: that it did not is no news any more. What was written is still in its box. */
export function reachable(): void {
  if (lost !== undefined && error.value === lost) error.value = "";
  lost = undefined;
}

/** As `attempt`, for what nobody asked for just now: what is shown as wrong stays shown. */
export async function background(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (cause) {
    error.value = inWords(cause);
    lost = cause instanceof OmnidError && cause.code === "network" ? error.value : undefined;
    return false;
  }
}
