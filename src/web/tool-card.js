// @ts-check
// A tool call: what it does in a line, its arguments as a person reads them, how it stands, and its output as it comes.

import { el, growText, picture, setText } from "./dom.js";
import { copyButton } from "./prose.js";

/** @import { ToolItem } from "./types.d.ts" */

/** The argument that says most, by tool; others are tried in this order. */
const TELLING = ["cmd", "file_path", "source", "description", "path", "url", "query"];

/**
 * Arguments as a person reads them: the telling one, and the others by name. Text that is no JSON object (it is still
 * being written, or broken) is shown as it is.
 * @param {string} json @returns {{ telling: string, others: { name: string, value: string }[], raw: string }}
 */
export function readArguments(json) {
  try {
    const value = JSON.parse(json.trim() === "" ? "{}" : json);
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw new TypeError("no object");
    const telling = TELLING.find((name) => typeof value[name] === "string");
    const others = Object.entries(value)
      .filter(([name]) => name !== telling)
      .map(([name, each]) => ({ name, value: typeof each === "string" ? each : JSON.stringify(each, null, 2) }));
    return { telling: telling === undefined ? "" : value[telling], others, raw: "" };
  } catch {
    return { telling: "", others: [], raw: json };
  }
}

/** @param {ToolItem} item @returns {{ text: string, tone: string }} */
export function describeState(item) {
  switch (item.state) {
    case "writing":
      return { text: "Being written", tone: "busy" };
    case "waiting":
      return { text: "Waiting its turn", tone: "quiet" };
    case "approval":
      return { text: "Needs your approval", tone: "ask" };
    case "running":
      return { text: "Running", tone: "busy" };
    case "done":
      if (item.exitCode === null) return { text: "Done", tone: "good" };
      return { text: `Exit code ${item.exitCode}`, tone: item.exitCode === 0 ? "good" : "warn" };
    case "failed":
      return { text: "Failed", tone: "bad" };
    case "timeout":
      return { text: "Timed out", tone: "bad" };
    case "denied":
      return { text: item.decidedBy === "timeout" ? "Denied: nobody answered" : "Denied", tone: "warn" };
    case "aborted":
      return { text: "Interrupted", tone: "warn" };
    default:
      return { text: "Not run", tone: "warn" };
  }
}

/** @param {ToolItem} item */
const approvalText = (item) => {
  if (item.state === "denied" || item.state === "aborted" || item.decidedBy === "") return "";
  return item.decidedBy === "policy" ? "Allowed by the Session's mode" : "Allowed by you";
};

/** @param {ToolItem["name"]} name @param {string} json @returns {HTMLElement} */
export function argumentsNode(name, json) {
  const { telling, others, raw } = readArguments(json);
  const node = el("div", { class: "arguments" });
  if (raw !== "") node.append(el("pre", { tabindex: 0 }, raw));
  if (telling !== "") {
    const isCommand = name === "exec_command";
    node.append(el("pre", { class: isCommand ? "command" : "path", tabindex: 0 }, telling));
  }
  for (const { name: label, value } of others) {
    const isShort = value.length < 60 && !value.includes("\n");
    const shown = isShort ? el("code", {}, value) : el("pre", { tabindex: 0 }, value);
    node.append(
      el("div", { class: isShort ? "argument short" : "argument" }, el("span", { class: "label" }, label), shown),
    );
  }
  return node;
}

/** @returns {{ node: HTMLElement, update: (item: ToolItem) => void }} */
export function toolCard() {
  const name = el("span", { class: "tool-name" });
  const gist = el("span", { class: "gist" });
  const state = el("span", { class: "state" });
  const args = el("div");
  const approval = el("p", { class: "approved" });
  const output = el("pre", { class: "output", tabindex: 0, "aria-label": "Output" });
  const progress = el("pre", { class: "progress" });
  const pictures = el("div", { class: "pictures" });
  const copy = copyButton(() => output.textContent ?? "");
  const outputBox = el("div", { class: "output-box" }, copy, output);
  const body = el("div", { class: "tool-body" }, args, approval, outputBox, progress, pictures);
  const node = el("details", { class: "tool", open: true }, el("summary", {}, name, gist, state), body);
  let shownArgs = "";
  let shownImages = "";
  // The last piece of an output comes as it ends.
  let isLive = false;

  return {
    node,
    update: (item) => {
      const { text, tone } = describeState(item);
      setText(name, item.name || "tool");
      setText(state, text);
      state.className = `state ${tone}`;
      const { telling, raw } = readArguments(item.args);
      setText(gist, (telling || raw).split("\n")[0] ?? "");
      if (shownArgs !== `${item.name}\n${item.args}`) {
        shownArgs = `${item.name}\n${item.args}`;
        args.replaceChildren(argumentsNode(item.name, item.args));
      }
      const approved = approvalText(item);
      setText(approval, approved);
      approval.hidden = approved === "";
      outputBox.hidden = !item.hasOutput || item.output === "";
      const isAtEnd = output.scrollHeight - output.scrollTop - output.clientHeight < 8;
      growText(output, item.output);
      // A reader who looked further up stays there.
      if (isAtEnd && isLive) output.scrollTop = output.scrollHeight;
      isLive = item.state === "running";
      setText(progress, item.progress);
      progress.hidden = item.progress === "";
      pictures.hidden = item.images.length === 0;
      if (shownImages !== item.images.join("\n")) {
        shownImages = item.images.join("\n");
        pictures.replaceChildren(...item.images.map((url) => picture(url, "Image that the tool gave")));
      }
    },
  };
}
