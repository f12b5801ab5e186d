// How the Task stands and what it has cost, below the prompt.

import type { View } from "../../client/index.js";
import { retryNow } from "../actions.js";
import { activityOf, lastRequest, type Standing, usageText } from "../standing.js";
import { current, isBusy, isSending, modelKey, models, now, view } from "../state.js";

export function StatusLine() {
  const shown = view.value;
  const { text, tone } = standingOf(shown);
  return (
    <div id="standing">
      <span id="activity" class={tone}>
        {text}
      </span>
      {shown?.task?.retry !== undefined && (
        <button id="retry-task" type="button" class="plain" onClick={() => void retryNow()}>
          Retry now
        </button>
      )}
      <span id="usage" class="faint">
        {usageText(usageOf(shown))}
        {shown !== null && <ContextMeter shown={shown} />}
      </span>
    </div>
  );
}

function standingOf(shown: View | null): Pick<Standing, "text" | "tone"> {
  if (isSending.value && !isBusy.value) return { text: "Sending", tone: "busy" };
  return shown === null ? { text: "", tone: "idle" } : activityOf(shown, now.value);
}

/** The Session's, children's included, unless the stream knows of more by now. */
function usageOf(shown: View | null) {
  const listed = current.value?.usage ?? null;
  const own = shown?.usage ?? null;
  if (own === null) return listed;
  return listed === null || own.total > listed.total ? { ...own, costUsd: listed?.costUsd } : listed;
}

/** How much of the model's context the last Request took. */
function ContextMeter({ shown }: { shown: View }) {
  const model = models.value?.models.find(
    (each) => current.value !== null && modelKey(each) === modelKey(current.value),
  );
  const last = lastRequest(shown);
  if (model === undefined || last === undefined || model.contextWindow <= 0) return null;
  const share = Math.min(1, last.total / model.contextWindow);
  if (share < 0.01) return null;
  return (
    <span class="more" title={`${last.total} of ${model.contextWindow} tokens`}>
      {" "}
      · {Math.round(share * 100)}% of context
    </span>
  );
}
