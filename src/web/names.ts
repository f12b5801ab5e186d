// What a Session is called: the name it was given, else the beginning of its first prompt where the page has seen that,
// else its id. The list does not say what was asked in a Session, so this is learned when one is opened.

import { computed, signal } from "@preact/signals";
import { isPayload, type Session, type View } from "../client/index.js";

const MOST_NAMES = 200;
const NAME_CHARACTERS = 60;
const ID_CHARACTERS = 8;

/** By Session id, the last that was learned at the end. */
export const learned = signal<readonly (readonly [id: string, name: string])[]>([]);
const byId = computed(() => new Map(learned.value));

export const nameOf = (session: Session): string => givenName(session) || `Session ${shortId(session.sessionId)}`;

/** The name it was given, or what its first prompt says; empty where neither is known. */
export const givenName = ({ sessionId, title }: Session): string => title?.trim() || (byId.value.get(sessionId) ?? "");

/** Ids begin with what many share, and end with what none does. */
const shortId = (id: string): string => id.slice(-ID_CHARACTERS);

/** A prompt as a name: its first line that says something, cut. */
export function nameFrom(prompt: string): string {
  const line = prompt.trimStart().split("\n", 1)[0]?.trimEnd() ?? "";
  const characters = Array.from(line.slice(0, 4 * NAME_CHARACTERS));
  return characters.length <= NAME_CHARACTERS
    ? characters.join("")
    : `${characters.slice(0, NAME_CHARACTERS - 1).join("")}…`;
}

/** Takes the name of a Session that has none from its first prompt, where that is in the view. */
export function learnName({ sessionId, session, first, messages }: View): void {
  // An older page would begin with another prompt.
  if (session === null || session.title || first > 0 || byId.peek().has(sessionId)) return;
  for (const { message } of messages) {
    if (!isPayload(message, "text") || message.payload.role !== "user") continue;
    const name = nameFrom(message.payload.text);
    if (name === "") return;
    learned.value = [...learned.peek(), [sessionId, name] as const].slice(-MOST_NAMES);
    return;
  }
}

/** Takes up what was learned before, as it was kept. */
export function takeNames(kept: unknown): void {
  if (!Array.isArray(kept)) return;
  learned.value = kept.filter(
    (each) => Array.isArray(each) && each.length === 2 && each.every((part) => typeof part === "string"),
  );
}
