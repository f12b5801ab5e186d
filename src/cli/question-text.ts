// A call as the person who is to allow it sees it: every argument, whole, its line ends as line ends. What is not shown
// could not be judged, so nothing is shortened in silence; only a call that no screen holds is cut in the middle, which
// is said. None of it steers the terminal, and no argument can look like a line of ours: those begin at the margin.

import { printable } from "./printable.js";

export interface QuestionText {
  /** All of it, indented; empty where there are no arguments. */
  whole: string;
  /** Where `whole` is too long for a screen: its two ends, and how much is missing between them. */
  cut?: { head: string; missing: string; tail: string };
}

const MAX_CHARACTERS = 4_000;
const MAX_LINES = 60;

export function questionOf(json: string): QuestionText {
  const whole = linesOf(json).join("\n");
  const characters = [...whole];
  const lines = whole.split("\n").length;
  if (characters.length <= MAX_CHARACTERS && lines <= MAX_LINES) return { whole };
  const head = linesIn(characters.slice(0, MAX_CHARACTERS / 2)).slice(0, MAX_LINES / 2);
  const tail = linesIn(characters.slice(-MAX_CHARACTERS / 2)).slice(-MAX_LINES / 2);
  const missing = characters.length - [...head.join("\n"), ...tail.join("\n")].length;
  const said = `${missing.toLocaleString("en")} of ${characters.length.toLocaleString("en")} characters`;
  // The tail may begin within a line, whose indent is then missing.
  return { whole, cut: { head: head.join("\n"), missing: said, tail: `  …${tail.join("\n")}` } };
}

function linesOf(json: string): string[] {
  try {
    const args: unknown = JSON.parse(json);
    if (typeof args !== "object" || args === null || Array.isArray(args)) return block(JSON.stringify(args), "  ");
    return Object.entries(args).flatMap(([name, value]) => argumentOf(name, value));
  } catch {
    return block(json, "  "); // No JSON, or deeper than a stack: it is shown as the model wrote it.
  }
}

function argumentOf(name: string, value: unknown): string[] {
  const text = typeof value === "string" ? value : JSON.stringify(value, undefined, 2);
  const label = `  ${safe(name)}:`;
  return text.includes("\n") ? [label, ...block(text, "    ")] : [`${label} ${safe(text)}`];
}

const block = (text: string, indent: string): string[] => text.split("\n").map((line) => `${indent}${safe(line)}`);
const linesIn = (characters: readonly string[]): string[] => characters.join("").split("\n");
/** Behind a tab at the right margin a terminal may write one character over the other; behind spaces it goes on. */
const safe = (line: string): string => printable(line.replaceAll("\t", "    "));
