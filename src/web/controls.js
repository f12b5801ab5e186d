// @ts-check
// Choices and dialogs: models, approval modes, the token, the deletion.

import { inWords } from "./api.js";
import { byId, el, setText } from "./dom.js";

/** @import { Api } from "./api.js" */
/** @import { Models } from "./types.d.ts" */

const MODES = [
  { value: "always-ask", text: "Ask for every tool" },
  { value: "read-only", text: "Ask before writing" },
  { value: "allow-all", text: "Allow all" },
];

/** Prompts that the demo model understands. */
const EXAMPLES = ["/run ls -la", "/parallel date && uptime", "/write notes.md Hello from omnid", "/think about it"];

/** @param {string} id */
const selectOf = (id) => /** @type {HTMLSelectElement} */ (byId(id));

/**
 * @param {Api} api @param {(text: string) => void} onError @param {() => string | null} selected
 * @param {(prompt: string) => void} onExample
 */
export function pickers(api, onError, selected, onExample) {
  const mode = selectOf("mode");
  const newMode = selectOf("new-mode");
  const model = selectOf("model");
  for (const each of [mode, newMode]) each.append(...MODES.map(({ value, text }) => el("option", { value }, text)));
  let shownMode = "";
  const showExamples = () => {
    byId("examples").hidden = !model.value.includes('"demo"');
  };
  model.addEventListener("change", showExamples);
  byId("example-list").append(
    ...EXAMPLES.map((text) => el("button", { type: "button", click: () => onExample(text) }, text)),
  );

  mode.addEventListener("change", async () => {
    const id = selected();
    if (id === null) return;
    try {
      await api.call("PATCH", `/sessions/${encodeURIComponent(id)}`, { approvalMode: mode.value });
    } catch (error) {
      mode.value = shownMode;
      onError(inWords(error));
    }
  });

  return {
    /** @param {string} value */
    showMode: (value) => {
      if (value !== shownMode) mode.value = value;
      shownMode = value;
    },
    load: async () => {
      try {
        /** @type {Models} */
        const { models, defaultModel } = await api.call("GET", "/models");
        model.replaceChildren(
          ...models.map(({ provider, modelId, available, reason }) => {
            const name = `${provider}/${modelId}`;
            const text = available ? name : `${name} – ${reason ?? "not available"}`;
            return el("option", { value: JSON.stringify({ provider, modelId }), disabled: !available }, text);
          }),
        );
        model.value = JSON.stringify({ provider: defaultModel.provider, modelId: defaultModel.modelId });
        showExamples();
      } catch (error) {
        onError(inWords(error));
      }
    },
    /** The body that makes a Session of what is chosen. */
    forNewSession: () => {
      const workspace = /** @type {HTMLInputElement} */ (byId("workspace")).value.trim();
      return {
        ...(model.value === "" ? {} : JSON.parse(model.value)),
        approvalMode: newMode.value,
        ...(workspace === "" ? {} : { workspace }),
      };
    },
  };
}

/** @returns {(isWrong: boolean) => Promise<string>} */
export function tokenDialog() {
  const dialog = /** @type {HTMLDialogElement} */ (byId("token-dialog"));
  const input = /** @type {HTMLInputElement} */ (byId("token"));
  // Nothing can be done here without a token.
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  return (isWrong) =>
    new Promise((resolve) => {
      if (isWrong) setText(byId("token-note"), "The server does not know this token. Try another.");
      input.value = "";
      if (!dialog.open) dialog.showModal();
      input.focus();
      dialog.addEventListener("close", () => resolve(input.value.trim()), { once: true });
    });
}

/** @param {() => Promise<void>} remove */
export function deleteDialog(remove) {
  const dialog = /** @type {HTMLDialogElement} */ (byId("delete-dialog"));
  byId("delete").addEventListener("click", () => {
    dialog.returnValue = "keep";
    dialog.showModal();
  });
  dialog.addEventListener("close", () => {
    if (dialog.returnValue === "delete") void remove();
  });
}
