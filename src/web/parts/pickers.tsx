// Which model, how much it may think and what it may do unasked: for the next Session, or for the one that is open. A
// Session keeps its model; another one goes on in a fork.

import type { ApprovalMode, Model, ThinkingLevel } from "../../client/index.js";
import { fork, update } from "../actions.js";
import { choices, current, error, isBusy, modelKey, models, view } from "../state.js";

export const MODES: readonly { value: ApprovalMode; text: string }[] = [
  { value: "always-ask", text: "Ask every time" },
  { value: "read-only", text: "Ask before writing" },
  { value: "allow-all", text: "Allow all" },
];

const LEVELS: readonly { value: ThinkingLevel; text: string }[] = [
  { value: "default", text: "Default thinking" },
  { value: "none", text: "No thinking" },
  { value: "low", text: "Low thinking" },
  { value: "medium", text: "Medium thinking" },
  { value: "high", text: "High thinking" },
  { value: "xhigh", text: "Very high thinking" },
  { value: "max", text: "Most thinking" },
];

type Settings = { approvalMode: ApprovalMode } | { thinkingLevel: ThinkingLevel };

export function Pickers() {
  const session = current.value;
  const mode = session?.approvalMode ?? choices.value.approvalMode;
  const level = session?.thinkingLevel ?? choices.value.thinkingLevel;
  /** A choice that the server refuses is taken back. */
  const set = async (field: HTMLSelectElement, was: string, change: Settings) => {
    if (session === null) choices.value = { ...choices.value, ...change };
    else if (!(await update(session.sessionId, change))) field.value = was;
  };
  return (
    <div class="pickers">
      <ModelPicker />
      <select
        id="mode"
        class="pick"
        aria-label="Approvals"
        value={mode}
        onChange={({ currentTarget: field }) => void set(field, mode, { approvalMode: field.value as ApprovalMode })}
      >
        {MODES.map(({ value, text }) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
      <select
        id="thinking"
        class="pick"
        aria-label="Thinking"
        value={level}
        onChange={({ currentTarget: field }) => void set(field, level, { thinkingLevel: field.value as ThinkingLevel })}
      >
        {LEVELS.map(({ value, text }) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

function ModelPicker() {
  const session = current.value;
  const listed = models.value?.models ?? [];
  const chosen = session === null ? choices.value.model : modelKey(session);
  const isKnown = chosen === "" || listed.some((each) => modelKey(each) === chosen);
  const choose = (field: HTMLSelectElement) => {
    const { value } = field;
    if (session === null) choices.value = { ...choices.value, model: value };
    else {
      // It shows the Session's own until the fork is there.
      field.value = chosen;
      continueWith(value);
    }
  };
  return (
    <select
      id="model"
      class="pick"
      aria-label="Model"
      title={session === null ? chosen : `${chosen}. Another model goes on in a fork of this Session`}
      value={chosen}
      onChange={(event) => choose(event.currentTarget)}
    >
      {!isKnown && <option value={chosen}>{chosen}</option>}
      {/* A provider's name is long enough to leave no room for the model's. */}
      {providersOf(listed).map((provider) => (
        <optgroup key={provider} label={provider}>
          {listed.filter((model) => model.provider === provider).map((model) => option(model, chosen))}
        </optgroup>
      ))}
    </select>
  );
}

const providersOf = (listed: readonly Model[]): string[] => [...new Set(listed.map(({ provider }) => provider))];

function option(model: Model, chosen: string) {
  const { available, modelId, reason } = model;
  const key = modelKey(model);
  return (
    <option key={key} value={key} disabled={!available && key !== chosen}>
      {available ? modelId : `${modelId} – ${reason ?? "not available"}`}
    </option>
  );
}

function continueWith(model: string): void {
  const shown = view.value;
  if (shown === null) return;
  if (isBusy.value) error.value = "Another model can take over once this Task is over, or after Stop.";
  else void fork(Math.max(0, shown.confirmed - 1), { model });
}
