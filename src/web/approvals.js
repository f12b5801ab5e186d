// @ts-check
// What waits for a person, above the prompt, so that it is in sight wherever the conversation is scrolled.

import { announce, byId, el, setText } from "./dom.js";
import { argumentsNode } from "./tool-card.js";

/** @import { Approval } from "./types.d.ts" */

/**
 * @param {(approval: Approval, decision: "allow" | "deny", reason: string) => Promise<void>} decide
 * @returns {(approvals: Approval[], ownId: string) => void}
 */
export function approvalPanel(decide) {
  const host = byId("approvals");
  /** @type {Map<string, HTMLElement>} */
  const panels = new Map();
  return (approvals, ownId) => {
    const open = new Map(approvals.map((approval) => [keyOf(approval), approval]));
    for (const [key, node] of panels) {
      if (open.has(key)) continue;
      // The keyboard goes on where it was.
      if (node.contains(document.activeElement)) byId("prompt").focus();
      node.remove();
      panels.delete(key);
    }
    for (const [key, approval] of open) {
      if (panels.has(key)) continue;
      const node = panelOf(approval, approval.sessionId !== ownId, decide);
      panels.set(key, node);
      host.append(node);
      announce(`${approval.toolCall.payload.name} needs your approval`);
    }
  };
}

/** @param {Approval} approval */
const keyOf = ({ sessionId, toolCall }) => JSON.stringify([sessionId, toolCall.payload.tool_call_id]);

/** @param {Approval} approval @param {boolean} isChild @param {(approval: Approval, decision: "allow" | "deny", reason: string) => Promise<void>} decide */
function panelOf(approval, isChild, decide) {
  const { name = "tool", arguments: args = "" } = approval.toolCall.payload;
  const reason = el("input", {
    type: "text",
    class: "reason",
    placeholder: "Reason for a denial (optional)",
    "aria-label": "Reason for a denial, optional",
  });
  const note = el("p", { class: "note" });
  const allow = el("button", { type: "button", class: "primary" }, "Allow");
  const deny = el("button", { type: "button", class: "danger" }, "Deny");
  let isGiving = false;
  // Not `disabled`: that would take the keyboard's focus away.
  const setGiving = (/** @type {boolean} */ giving) => {
    isGiving = giving;
    for (const button of [allow, deny]) button.setAttribute("aria-disabled", String(giving));
  };
  const give = async (/** @type {"allow" | "deny"} */ decision) => {
    if (isGiving) return;
    setGiving(true);
    try {
      await decide(approval, decision, reason.value.trim());
      setText(note, decision === "allow" ? "Allowed." : "Denied.");
    } catch {
      // It was said why. Whoever is still asked may try again.
      setGiving(false);
    }
  };
  allow.addEventListener("click", () => void give("allow"));
  deny.addEventListener("click", () => void give("deny"));
  reason.addEventListener("keydown", (event) => {
    if (event.key === "Enter") void give("deny");
  });
  const until = approval.expiresAt === undefined ? "" : ` until ${new Date(approval.expiresAt).toLocaleTimeString()}`;
  setText(
    note,
    `${isChild ? "Asked by a subagent. " : ""}Waiting since ${new Date(approval.requestedAt).toLocaleTimeString()}${until}`,
  );
  return el(
    "section",
    { class: "request", "aria-label": `Approval of ${name}` },
    el("h3", {}, "Allow ", el("code", {}, name), "?"),
    argumentsNode(name, args),
    el("div", { class: "answer" }, allow, deny, reason),
    note,
  );
}
