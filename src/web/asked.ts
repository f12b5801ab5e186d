// What is asked of a person, and for whom, in words that tell one question from another.

import type { Approval, View } from "../client/index.js";
import { askedOf } from "./items.js";
import { nameFrom } from "./names.js";
import { readArguments } from "./tool-words.js";
import { visibleText } from "./visible-text.js";

/** The tool with what says most of what it is to do. */
export function callText({ toolCall }: Approval): string {
  const { name, arguments: json } = toolCall.payload;
  const { telling, raw } = readArguments(json);
  const what = nameFrom(telling || raw);
  return visibleText(what === "" ? name : `${name}: ${what}`);
}

/** Empty where the Session itself asks. */
export function askerText({ sessionId, origin }: Approval, view: View | null): string {
  if ((origin ?? []).length === 0 && sessionId === view?.sessionId) return "";
  const children = view?.children ?? {};
  const asked = Object.hasOwn(children, sessionId) ? askedOf(children[sessionId]) : "";
  return asked === "" ? "a subagent" : `a subagent for “${asked}”`;
}

export function approvalName(approval: Approval, view: View | null): string {
  const asker = askerText(approval, view);
  return `Approval of ${callText(approval)}${asker === "" ? "" : `, asked by ${asker}`}`;
}

/** What a screen reader is told as it is asked. */
export function approvalNews(approval: Approval, view: View): string {
  const asker = askerText(approval, view);
  return `${asker === "" ? "" : `Asked by ${asker}: `}${callText(approval)} needs your approval.`;
}
