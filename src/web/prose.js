// @ts-check
// Markdown on the page. While a text grows only the blocks that changed are made anew.

import { el, growText } from "./dom.js";
import { blocksOf, spansOf } from "./markdown.js";

/** @import { Block, Span } from "./markdown.js" */

/** What each block's element was made from. @type {WeakMap<Node, string>} */
const madeFrom = new WeakMap();

/** @param {HTMLElement} host @param {string} text */
export function showProse(host, text) {
  const blocks = blocksOf(text);
  for (const [index, block] of blocks.entries()) {
    const old = host.children[index];
    const made = JSON.stringify([block.kind, "language" in block ? block.language : "", block.source]);
    if (old !== undefined && madeFrom.get(old) === made) continue;
    const code = block.kind === "code" ? old?.querySelector("code") : null;
    if (old !== undefined && code && old.getAttribute("data-language") === languageOf(block)) {
      growText(code, block.source);
      madeFrom.set(old, made);
      continue;
    }
    const node = blockNode(block);
    madeFrom.set(node, made);
    if (old === undefined) host.append(node);
    else old.replaceWith(node);
  }
  while (host.children.length > blocks.length) host.lastElementChild?.remove();
}

/** @param {Block} block */
const languageOf = (block) => (block.kind === "code" ? block.language : "");

/** @param {Block} block @returns {HTMLElement} */
function blockNode(block) {
  switch (block.kind) {
    case "code":
      return codeNode(block.source, block.language);
    case "heading":
      // The page has its own h1 and h2.
      return el("h3", { class: `level-${block.level}` }, ...spanNodes(block.source));
    case "rule":
      return el("hr");
    case "quote":
      return el("blockquote", {}, ...spanNodes(block.source));
    case "list": {
      const items = block.items.map((item) => el("li", {}, ...spanNodes(item)));
      return block.ordered ? el("ol", { start: block.start }, ...items) : el("ul", {}, ...items);
    }
    case "table": {
      const [head = [], ...rows] = block.rows;
      const body = rows.map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, ...spanNodes(cell)))));
      const header = el("tr", {}, ...head.map((cell) => el("th", { scope: "col" }, ...spanNodes(cell))));
      return el(
        "div",
        { class: "table", tabindex: 0 },
        el("table", {}, el("thead", {}, header), el("tbody", {}, ...body)),
      );
    }
    default:
      return el("p", {}, ...spanNodes(block.source));
  }
}

/** @param {string} source @param {string} language */
function codeNode(source, language) {
  const code = el("code", {}, source);
  const copy = copyButton(() => code.textContent ?? "");
  const label = el("span", { class: "language" }, language);
  return el(
    "div",
    { class: "code", "data-language": language },
    el("div", { class: "code-bar" }, label, copy),
    el("pre", { tabindex: 0 }, code),
  );
}

/** @param {() => string} textOf */
export function copyButton(textOf) {
  const button = el("button", { type: "button", class: "copy", "aria-label": "Copy" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(textOf());
      button.textContent = "Copied";
    } catch {
      // No clipboard over plain HTTP, or none allowed.
      button.textContent = "Cannot copy";
    }
    setTimeout(() => {
      button.textContent = "Copy";
    }, 1500);
  });
  return button;
}

/** @param {string} source @returns {(Node | string)[]} */
const spanNodes = (source) => spansOf(source).map(spanNode);

/** @param {Span} span @returns {Node | string} */
function spanNode(span) {
  switch (span.kind) {
    case "text":
      return span.text;
    case "code":
      return el("code", {}, span.text);
    case "link":
      return el("a", { href: span.href, target: "_blank", rel: "noopener noreferrer" }, ...span.spans.map(spanNode));
    default:
      return el(span.kind, {}, ...span.spans.map(spanNode));
  }
}
