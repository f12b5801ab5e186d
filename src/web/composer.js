// @ts-check
// The prompt box. A prompt stays in it until the server has it. One that may have arrived (the connection broke) is sent
// again under the same key, so that it runs once.

import { ApiError, inWords } from "./api.js";
import { byId } from "./dom.js";

const SEND_TRIES = 3;

/**
 * @param {(input: string, key: string) => Promise<void>} submit throws when the prompt was not taken
 * @param {() => void} stop
 * @param {(error: string) => void} onError an empty one takes the last away
 */
export function composer(submit, stop, onError) {
  const form = byId("composer");
  const box = /** @type {HTMLTextAreaElement} */ (byId("prompt"));
  const send = /** @type {HTMLButtonElement} */ (byId("send"));
  const stopButton = /** @type {HTMLButtonElement} */ (byId("stop"));
  let isBusy = false;
  let isSending = false;
  let key = "";

  const show = () => {
    send.disabled = isSending || isBusy || box.value.trim() === "";
    send.hidden = isBusy;
    stopButton.hidden = !isBusy;
    box.readOnly = isSending;
  };
  const grow = () => {
    box.style.setProperty("height", "auto");
    box.style.setProperty("height", `${box.scrollHeight + 2}px`);
  };
  const go = async () => {
    const input = box.value;
    if (isSending || input.trim() === "") return;
    if (isBusy) return onError("The model is at work. Wait for it, or stop it; your prompt stays here.");
    isSending = true;
    onError("");
    show();
    key ||= newKey();
    try {
      await retried(() => submit(input, key));
      key = "";
      box.value = "";
      grow();
    } catch (error) {
      onError(inWords(error));
    }
    isSending = false;
    show();
  };

  box.addEventListener("input", () => {
    // Another text is another prompt.
    key = "";
    grow();
    show();
  });
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    void go();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void go();
  });
  stopButton.addEventListener("click", stop);
  show();
  return {
    /** @param {boolean} busy */
    setBusy: (busy) => {
      isBusy = busy;
      show();
    },
    focus: () => box.focus(),
    /** @param {string} text */
    fill: (text) => {
      box.value = text;
      key = "";
      grow();
      show();
      box.focus();
    },
  };
}

/** Tries again only where it is unknown whether the server has it. @param {() => Promise<void>} step */
async function retried(step) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await step();
    } catch (error) {
      const isUnknown = error instanceof TypeError || (error instanceof ApiError && [502, 504].includes(error.status));
      if (!isUnknown || tries === SEND_TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, 400 * tries));
    }
  }
}

/** A key that no other prompt has; `randomUUID` is not there over plain HTTP. */
export const newKey = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
