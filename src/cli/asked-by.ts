// Which subagent a question is of, in words: told from others by how its prompt begins.

import { type Approval, isPayload, type View } from "../client/index.js";
import { shortened } from "./transcript-text.js";
import { isWhole, messagesOf } from "./unseen.js";

const MAX_PROMPT = 60;

/** Undefined for a call of the Session itself. */
export function askedBy(view: View, { sessionId }: Approval): string | undefined {
  if (sessionId === view.sessionId) return undefined;
  for (const { message } of messagesOf(view, sessionId)) {
    if (!isPayload(message, "text") || message.payload.role !== "user") continue;
    const [line = ""] = message.payload.text.trimStart().split("\n", 1);
    return line === "" ? SOMEBODY : `Asked by a subagent for “${shortened(line, MAX_PROMPT)}”.`;
  }
  return SOMEBODY;
}

const SOMEBODY = "Asked by a subagent.";

/** Whether all that came before a question is there: it is shown first, so that it can be judged. */
export function isAskable(view: View, { sessionId }: Approval): boolean {
  const child = Object.hasOwn(view.children, sessionId) ? view.children[sessionId] : undefined;
  return isWhole(view) && child?.isRead !== false;
}
