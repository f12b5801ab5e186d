// What a person said, as its records have it: which of them are one Prompt, and that Prompt as it may be sent again.

import {
  type CompleteMessage,
  isCompleteModelMessage,
  type OmniMessage,
  type Prompt,
  type View,
} from "../client/index.js";
import { visibleText } from "./visible-text.js";

type Part = Exclude<Prompt, string>[number];

/** Prompt and steering, pictures and files; never a tool's output. */
export const isSaid = (message: OmniMessage): message is CompleteMessage =>
  isCompleteModelMessage(message) && message.payload.role === "user" && message.payload.type !== "tool_call_output";

export const isSteering = ({ payload }: CompleteMessage): boolean => steerIdOf(payload) !== undefined;

/** Whether two records, one right behind the other, are of one Prompt: all of it is recorded at one time. */
export const isSamePrompt = (one: CompleteMessage, next: CompleteMessage): boolean =>
  one.timestamp === next.timestamp && steerIdOf(one.payload) === steerIdOf(next.payload);

/** A copy, as a new context begins with of what the model has not answered, is the same to the letter. */
export const isCopyOf = (one: CompleteMessage | undefined, next: CompleteMessage): boolean =>
  one?.timestamp === next.timestamp && JSON.stringify(one.payload) === JSON.stringify(next.payload);

export interface SaidAgain {
  readonly input: readonly Part[];
  /** What the server would not take once more, in words. */
  readonly left: readonly string[];
}

/** The Prompt whose first record is at an ordinal, with all that went along. */
export function promptAt(ordinal: number, { first, messages }: Pick<View, "first" | "messages">): SaidAgain {
  const input: Part[] = [];
  const left: string[] = [];
  let before: CompleteMessage | undefined;
  for (const { message } of messages.slice(ordinal - first)) {
    if (!isSaid(message) || (before !== undefined && !isSamePrompt(before, message))) break;
    before = message;
    const part = partOf(message);
    if (typeof part === "string") left.push(part);
    else input.push(part);
  }
  return { input, left };
}

/** What the server takes as data; it says by itself what it finds wrong beyond that. */
const DATA_URL = /^data:[\w!#$&^.+-]+\/[\w!#$&^.+-]+;base64,[A-Za-z0-9+/]+={0,2}$/;
const PICTURE_URL = /^(?:https?:\/\/|data:image\/)/i;

/** @returns words for what it is where it cannot be sent */
function partOf({ payload }: CompleteMessage): Part | string {
  switch (payload.type) {
    case "text":
      return { type: "text", text: payload.text };
    case "image_url":
      return pictureOf(payload.image_url);
    case "inline_data": {
      const { mime_type: type, data, file_name: name = "file" } = payload;
      const dataUrl = `data:${type};base64,${data}`;
      if (type.startsWith("image/")) return pictureOf(dataUrl);
      return DATA_URL.test(dataUrl)
        ? { type: "file", fileName: name.replace(/[/\\]/g, "_"), dataUrl }
        : visibleText(name);
    }
    default:
      return "something that this page does not know";
  }
}

function pictureOf(imageUrl: string): Part | string {
  const isData = /^data:/i.test(imageUrl);
  return PICTURE_URL.test(imageUrl) && (!isData || DATA_URL.test(imageUrl))
    ? { type: "image_url", imageUrl }
    : "a picture";
}

/** Every part of steering has it; only a text's is typed. */
const steerIdOf = (payload: object): unknown => ("steer_id" in payload ? payload.steer_id : undefined);
