// What is asked of a person, and for whom, in words that tell one question from another.

import type { Approval, View } from "../client/index.js";
import { askedOf } from "./items.js";
import { nameFrom } from "./names.js";
import { readArguments } from "./tool-words.js";
import { visibleText } from "./visible-text.js";

/** The tool with what says most of what it is to do. */
function callText({ toolCall }: Approval): string {
  const { name, arguments: json } = toolCall.payload;
  const { telling, raw } = readArguments(json);
  const what = nameFrom(telling || raw);
  return visibleText(what === "" ? name : `${name}: ${what}`);
}

/** Empty where the Session itself asks. */
function askerText({ sessionId, origin }: Approval, view: View | null): string {
  if ((origin ?? []).length === 0 && sessionId === view?.sessionId) return "";
  const children = view?.children ?? {};
  const asked = Object.hasOwn(children, sessionId) ? askedOf(children[sessionId]) : "";
  return asked === "" ? "a subagent" : `a subagent for “${asked}”`;
}

/** A question, and what it is told from the others by. */
export interface Asked {
  readonly approval: Approval;
  readonly call: string;
  readonly asker: string;
  /** `1 of 2` where others are of the same words, in the order in which they stand; otherwise empty. */
  readonly which: string;
}

/** What is asked at the same time: no two read the same. */
export function askedTogether(approvals: readonly Approval[], view: View | null): readonly Asked[] {
  const all = approvals.map((approval) => ({
    approval,
    call: callText(approval),
    asker: askerText(approval, view),
  }));
  return all.map((own) => {
    const alike = all.filter((each) => subjectOf(each) === subjectOf(own));
    return { ...own, which: alike.length === 1 ? "" : `${alike.indexOf(own) + 1} of ${alike.length}` };
  });
}

/** The number is in front, where no call and no prompt can write one. */
export const approvalName = (asked: Asked): string =>
  `Approval${asked.which === "" ? "" : ` (${asked.which})`} of ${subjectOf(asked)}`;

/** What a button does, for who hears it without the question around it. */
export const answerName = (answer: string, asked: Asked): string =>
  `${answer}${asked.which === "" ? "" : ` (${asked.which})`}: ${subjectOf(asked)}`;

/** What a screen reader is told as it is asked. */
export const approvalNews = ({ call, asker, which }: Asked): string =>
  `${asker === "" ? "" : `Asked by ${asker}: `}${call}${which === "" ? "" : ` (${which})`} needs your approval.`;

const subjectOf = ({ call, asker }: Pick<Asked, "call" | "asker">): string =>
  `${call}${asker === "" ? "" : `, asked by ${asker}`}`;
