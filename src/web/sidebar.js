// @ts-check
// The list of Sessions, and the drawer that it becomes on a phone.

import { byId, el, setText } from "./dom.js";

/** @import { Session } from "./types.d.ts" */

/** A Session's name: its title, or when it began. @param {Session} session */
export function nameOf(session) {
  if (session.title) return session.title;
  const at = new Date(session.createdAt);
  return `Session of ${at.toLocaleDateString(undefined, { day: "numeric", month: "short" })}, ${at.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" })}`;
}

/** @param {Session} session @returns {{ text: string, tone: string }} */
export function standingOf(session) {
  if (session.pendingApprovals > 0) return { text: "needs approval", tone: "ask" };
  if (session.state === "running") return { text: "running", tone: "busy" };
  if (session.state === "compacting") return { text: "compacting", tone: "busy" };
  return { text: "", tone: "idle" };
}

/**
 * @param {(sessionId: string) => void} onSelect
 * @returns {(sessions: Session[], selected: string | null) => void}
 */
export function sidebar(onSelect) {
  const list = byId("sessions");
  /** @type {Map<string, ReturnType<typeof row>>} */
  const rows = new Map();
  return (sessions, selected) => {
    byId("no-sessions").hidden = sessions.length > 0;
    let before = list.firstChild;
    for (const session of sessions) {
      const { sessionId } = session;
      const found = rows.get(sessionId) ?? row(() => onSelect(sessionId));
      rows.set(sessionId, found);
      found.update(session, sessionId === selected);
      if (found.node === before) before = before.nextSibling;
      else list.insertBefore(found.node, before);
    }
    const ids = new Set(sessions.map(({ sessionId }) => sessionId));
    for (const [id, { node }] of rows) {
      if (ids.has(id)) continue;
      node.remove();
      rows.delete(id);
    }
  };
}

/** @param {() => void} onSelect */
function row(onSelect) {
  const name = el("span", { class: "name" });
  const model = el("span", { class: "model" });
  const standing = el("span", { class: "standing" });
  const button = el(
    "button",
    { type: "button", click: onSelect },
    name,
    el("span", { class: "line" }, model, standing),
  );
  return {
    node: el("li", {}, button),
    /** @param {Session} session @param {boolean} isSelected */
    update: (session, isSelected) => {
      setText(name, nameOf(session));
      setText(model, `${session.provider}/${session.modelId}`);
      const { text, tone } = standingOf(session);
      setText(standing, text);
      standing.className = `standing ${tone}`;
      if (isSelected) button.setAttribute("aria-current", "page");
      else button.removeAttribute("aria-current");
    },
  };
}

/** The drawer: Escape and a tap beside it close it. @returns {() => void} how to close it */
export function drawer() {
  const open = byId("open-drawer");
  const set = (/** @type {boolean} */ isOpen) => {
    document.body.classList.toggle("drawer-open", isOpen);
    byId("scrim").hidden = !isOpen;
    // The keyboard stays in the drawer.
    byId("main").inert = isOpen;
    open.setAttribute("aria-expanded", String(isOpen));
  };
  open.addEventListener("click", () => {
    set(true);
    byId("close-drawer").focus();
  });
  const close = () => {
    const wasOpen = document.body.classList.contains("drawer-open");
    set(false);
    if (wasOpen) open.focus();
  };
  byId("close-drawer").addEventListener("click", close);
  byId("scrim").addEventListener("click", close);
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
  });
  return close;
}
