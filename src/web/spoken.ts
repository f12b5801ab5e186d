// What a screen reader is told when a Task is over: how it ended, as the screen says it, and what was answered.

import { isEventMessage, isPayload, type View } from "../client/index.js";
import { tokensOf } from "./markdown-tokens.js";
import { abortText, failureText, sentence } from "./notices.js";
import { visibleText } from "./visible-text.js";

/** Characters of an answer; the whole of it is in the conversation. */
const MOST_SPOKEN = 500;
/** Characters that are read as Markdown for them. */
const MOST_READ = 2_000;

/** How the Task that was looked at ended. */
export function endText({ task, messages }: Pick<View, "task" | "messages">): string {
  const { aborted, answer } = lastTask(messages);
  const { status, error } = task?.ended ?? {};
  if (error !== undefined) return visibleText(`Failed: ${sentence(error.message)}`);
  if (aborted !== undefined) return abortText(aborted);
  if (status === "aborted") return "Stopped.";
  if (status !== undefined && status !== "completed") return failureText(status);
  return `Finished. ${spokenText(answer)}`.trim();
}

/** What the last Task left: nothing from before its prompt or its compaction counts. */
function lastTask(messages: View["messages"]): { aborted?: string | null; answer: string } {
  let answer: string | undefined;
  for (let at = messages.length - 1; at >= 0; at -= 1) {
    const { message } = messages[at] as View["messages"][number];
    if (isEventMessage(message) && message.payload.type === "abort" && answer === undefined)
      return { aborted: message.payload.reason ?? null, answer: "" };
    if (isPayload(message, "compaction_end")) break;
    if (!isPayload(message, "text")) continue;
    if (message.payload.role !== "user") answer ??= message.payload.text;
    else if (message.payload.steer_id === undefined) break;
  }
  return { answer: answer ?? "" };
}

/** Markdown without its marks. */
export const spokenText = (markdown: string): string =>
  (tokensOf(markdown.slice(0, MOST_READ)).list as readonly Part[])
    .map(textOf)
    .join(" ")
    .replace(/\s+/g, " ")
    .trim()
    .slice(0, MOST_SPOKEN);

interface Part {
  type?: string;
  text?: string;
  tokens?: readonly Part[];
  items?: readonly Part[];
  /** Of a table; a cell says there whether it is of the head. */
  header?: unknown;
  rows?: readonly (readonly Part[])[];
}

function textOf(part: Part): string {
  const { type, text = "", tokens, items, header, rows = [] } = part;
  if (type === "def" || type === "hr") return "";
  if (items !== undefined) return items.map(textOf).join(" ");
  if (type === "table") return [header as readonly Part[], ...rows].map((row) => row.map(textOf).join(", ")).join(". ");
  if (tokens === undefined || tokens.length === 0) return text;
  // A paragraph in a list is a block of its own, and words within a line stand close.
  return tokens.map(textOf).join(tokens.some((each) => each.type === "list" || each.type === "paragraph") ? " " : "");
}
