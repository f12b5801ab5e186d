// What waits: prompts for later, and steering that the model has not been given yet.

import type { QueueItem } from "../../client/index.js";
import { recall } from "../actions.js";
import { isBusy, view } from "../state.js";
import { focusPromptEnd, promptBox, useHandOn } from "./focus.js";

export function QueueList() {
  const items = view.value?.queue ?? [];
  if (items.length === 0) return null;
  return (
    <ul id="queue" aria-label="Waiting">
      {items.map((item) => (
        <Waiting key={item.itemId} item={item} />
      ))}
    </ul>
  );
}

function Waiting({ item }: { item: QueueItem }) {
  const own = useHandOn<HTMLLIElement>(promptBox);
  const takeBack = async () => {
    if (await recall(item)) focusPromptEnd();
  };
  return (
    <li ref={own}>
      <span class="kind">{kindOf(item)}</span>
      <span class="text">{textOf(item)}</span>
      <button type="button" class="plain" onClick={() => void takeBack()}>
        Take back
      </button>
    </li>
  );
}

/** Steering that its Task was not given: nothing delivers it by itself after an interrupt. */
function kindOf({ kind }: QueueItem): string {
  if (kind === "task") return "Next";
  return isBusy.value ? "Steering" : "Not delivered";
}

function textOf({ input }: QueueItem): string {
  if (typeof input === "string") return input;
  return input
    .map((part) => (part.type === "text" ? part.text : part.type === "file" ? part.fileName : "Image"))
    .join(" · ");
}
