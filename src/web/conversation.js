// @ts-check
// The items of a Session on the page. Each keeps its element by its key, so that what is folded, selected or scrolled
// stays so while the conversation goes on.

import { el, growText, picture, setText } from "./dom.js";
import { showProse } from "./prose.js";
import { toolCard } from "./tool-card.js";

/** @import { Item } from "./types.d.ts" */

/** @typedef {{ node: HTMLElement, update: (item: any) => void, shown: Item | undefined, kind: string }} Card */

/** @param {HTMLElement} host @returns {(items: Item[]) => void} */
export function itemList(host) {
  /** @type {Map<string, Card>} */
  let cards = new Map();
  return (items) => {
    /** @type {Map<string, Card>} */
    const kept = new Map();
    let before = host.firstChild;
    for (const item of items) {
      const old = cards.get(item.key);
      const card = old?.kind === item.kind ? old : { ...cardOf(item.kind), shown: undefined, kind: item.kind };
      if (card.shown === undefined || !isEqual(card.shown, item)) card.update(item);
      card.shown = item;
      kept.set(item.key, card);
      if (card.node === before) before = before.nextSibling;
      else host.insertBefore(card.node, before);
    }
    for (const [key, card] of cards) if (kept.get(key) !== card) card.node.remove();
    cards = kept;
  };
}

/** @param {Item} a @param {Item} b */
function isEqual(a, b) {
  if (a.kind === "subagent" || b.kind === "subagent") return false;
  /** @type {Record<string, unknown>} */
  const left = { ...a };
  /** @type {Record<string, unknown>} */
  const right = { ...b };
  return Object.keys(right).every((key) => {
    const [x, y] = [left[key], right[key]];
    return Array.isArray(x) && Array.isArray(y)
      ? x.length === y.length && x.every((each, at) => each === y[at])
      : x === y;
  });
}

/** @param {string} kind @returns {Pick<Card, "node" | "update">} */
function cardOf(kind) {
  switch (kind) {
    case "user":
      return userCard();
    case "text":
      return textCard();
    case "thinking":
      return thinkingCard();
    case "tool":
      return toolCard();
    case "subagent":
      return subagentCard();
    case "notice":
      return noticeCard();
    default:
      return mediaCard();
  }
}

/** @returns {Pick<Card, "node" | "update">} */
function userCard() {
  const text = el("div", { class: "bubble" });
  const note = el("span", { class: "note" });
  const node = el("article", { class: "user", "aria-label": "You" }, text, note);
  return {
    node,
    /** @param {Extract<Item, { kind: "user" }>} item */
    update: (item) => {
      setText(text, item.text);
      setText(note, item.steered ? "sent while it worked" : "");
      note.hidden = !item.steered;
      node.title = new Date(item.at).toLocaleString();
    },
  };
}

/** @returns {Pick<Card, "node" | "update">} */
function textCard() {
  const prose = el("div", { class: "prose" });
  const note = el("p", { class: "note" });
  const node = el("article", { class: "assistant", "aria-label": "Answer" }, prose, note);
  return {
    node,
    /** @param {Extract<Item, { kind: "text" }>} item */
    update: (item) => {
      showProse(prose, item.text);
      node.classList.toggle("open", item.open);
      setText(note, cutText(item.stop));
      note.hidden = note.textContent === "";
    },
  };
}

/** @param {string} stop */
const cutText = (stop) => (stop === "" || stop === "completed" ? "" : `Not complete: ${stop}.`);

/** @returns {Pick<Card, "node" | "update">} */
function thinkingCard() {
  const label = el("span");
  const text = el("div", { class: "thought" });
  const node = el("details", { class: "thinking" }, el("summary", {}, label), text);
  return {
    node,
    /** @param {Extract<Item, { kind: "thinking" }>} item */
    update: (item) => {
      setText(label, item.open ? "Thinking…" : "Thinking");
      node.classList.toggle("open", item.open);
      growText(text, item.text === "" && !item.open ? "The provider keeps this reasoning to itself." : item.text);
    },
  };
}

/** @returns {Pick<Card, "node" | "update">} */
function subagentCard() {
  const host = el("div", { class: "items" });
  const show = itemList(host);
  const label = el("span");
  return {
    node: el("details", { class: "subagent", open: true }, el("summary", {}, label), host),
    /** @param {Extract<Item, { kind: "subagent" }>} item */
    update: (item) => {
      setText(label, "Subagent");
      show(item.items);
    },
  };
}

/** @returns {Pick<Card, "node" | "update">} */
function noticeCard() {
  const text = el("p");
  const more = el("div", { class: "prose" });
  const details = el("details", {}, el("summary", {}, "Show"), more);
  const node = el("div", { class: "notice" }, text, details);
  return {
    node,
    /** @param {Extract<Item, { kind: "notice" }>} item */
    update: (item) => {
      node.className = `notice ${item.tone}`;
      setText(text, item.text);
      details.hidden = item.more === "";
      showProse(more, item.more);
    },
  };
}

/** @returns {Pick<Card, "node" | "update">} */
function mediaCard() {
  const node = el("article", { class: "media" });
  return {
    node,
    /** @param {Extract<Item, { kind: "image" | "file" }>} item */
    update: (item) => {
      node.className = `media ${item.role}`;
      const shown =
        item.kind === "image" ? picture(item.url, "Image") : el("p", { class: "file" }, `File: ${item.name}`);
      node.replaceChildren(shown);
    },
  };
}
