// Colours for code. The library is loaded when the first piece of code needs it; without it code is shown plain.

import { type CleanHtml, cleanSpans } from "./markdown.js";

type Highlighter = typeof import("highlight.js/lib/common")["default"];

let loading: Promise<Highlighter> | undefined;

/** More would hold the page up for longer than colours are worth. */
const MAX_CHARACTERS = 50_000;

/** @returns sanitised HTML of the code, or undefined where it stays plain. */
export async function highlighted(code: string, language: string): Promise<CleanHtml | undefined> {
  if (language === "" || code.length > MAX_CHARACTERS) return undefined;
  loading ??= import("highlight.js/lib/common").then((module) => module.default);
  try {
    const highlighter = await loading;
    if (highlighter.getLanguage(language) === undefined) return undefined;
    return cleanSpans(highlighter.highlight(code, { language, ignoreIllegals: true }).value);
  } catch {
    // The server may be another by now, whose files have other names.
    loading = undefined;
    return undefined;
  }
}
