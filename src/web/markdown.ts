// What a model writes, as clean HTML, block by block: while an answer grows, only its last block changes.
//
// HTML in the text is shown as the text that it is. The sanitiser behind that is the second lock of the same door, the
// page's policy (no inline script, no picture from elsewhere) the third.

import DOMPurify, { type Config } from "dompurify";
import { Marked, type Token } from "marked";
import { chunksOf } from "./markdown-plain.js";
import { isPlain, NO_TOKENS, type Tokens, tokensOf } from "./markdown-tokens.js";

/** HTML that went through the sanitiser; where the browser knows trusted types it is of one, and nothing else is let in. */
export type CleanHtml = string & { readonly clean: unique symbol };

export interface Block {
  source: string;
  html: CleanHtml;
  /** There is code in it, to be coloured once the block is over. */
  hasCode: boolean;
  /** A piece of a text that is shown as it is written: white space counts, and the next piece goes on below it. */
  isPlain: boolean;
}

const marked = new Marked({ gfm: true });

marked.use({
  renderer: {
    html: ({ text }) => escaped(text),
    image: ({ href, title, text }) => {
      if (isPicture(href)) return `<img src="${escaped(href)}" alt="${escaped(text)}">`;
      // Whoever keeps a picture elsewhere would learn who reads this, and when.
      return `<a href="${escaped(href)}" title="${escaped(title ?? "")}">${escaped(text || href)} (picture, not loaded)</a>`;
    },
    code: ({ text, lang }) => {
      const name = /^[\w+#.-]{1,30}/.exec(lang ?? "")?.[0] ?? "";
      return `<pre><code${name === "" ? "" : ` class="language-${escaped(name)}"`}>${escaped(text)}</code></pre>\n`;
    },
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
    heading({ tokens, depth }) {
      // The page has two levels of its own above these.
      const level = Math.min(6, depth + 2);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>\n`;
    },
  },
});

const TAGS = [
  ...["p", "br", "hr", "strong", "em", "del", "a", "code", "pre", "img", "span", "blockquote", "ul", "ol", "li"],
  ...["h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"],
];
const POLICY = {
  ALLOWED_TAGS: TAGS,
  ALLOWED_ATTR: ["href", "title", "src", "alt", "class", "start", "align", "target", "rel"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ADD_URI_SAFE_ATTR: ["align", "start"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
};

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  // What is not followed is no link to look at either.
  if (node.nodeName === "A" && node.hasAttribute("href")) {
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer");
  }
  if (node.nodeName === "IMG" && !isPicture(node.getAttribute("src") ?? "")) node.remove();
});

/** A text as far as it was rendered. */
export interface Rendered {
  readonly tokens: Tokens;
  readonly blocks: readonly Block[];
}

export const NOTHING: Rendered = { tokens: NO_TOKENS, blocks: [] };

/**
 * The blocks of a text. Whole and half a text give the same ones up to where the half ends; those of `before` that have
 * not changed are taken from there.
 */
export function rendered(text: string, before: Rendered = NOTHING): Rendered {
  const tokens = tokensOf(text, before.tokens);
  if (tokens === before.tokens) return before;
  const known = (source: string, index: number, isPlain: boolean): Block | undefined => {
    const block = before.blocks[index];
    return block?.source === source && block.isPlain === isPlain ? block : undefined;
  };
  if (isPlain(tokens)) {
    const blocks = chunksOf(tokens.text).map((chunk, index) => known(chunk, index, true) ?? plainBlock(chunk));
    return { tokens, blocks };
  }
  const blocks = tokens.list
    .filter(({ type }) => type !== "space" && type !== "def")
    .map((token, index) => {
      const source = `${tokens.definitions}${token.raw}`;
      return known(source, index, false) ?? blockOf(token, source);
    });
  return { tokens, blocks };
}

function blockOf(token: Token, source: string): Block {
  try {
    const html = sanitised(marked.parser([token]), POLICY);
    return { source, html, hasCode: token.type === "code" || token.raw.includes("```"), isPlain: false };
  } catch {
    // One block that cannot be made HTML takes nothing else with it.
    return { ...plainBlock(token.raw), source, isPlain: false };
  }
}

const plainBlock = (text: string): Block => ({
  source: text,
  html: sanitised(`<pre class="plain">${escaped(text)}</pre>`, POLICY),
  hasCode: false,
  isPlain: true,
});

/** HTML of our own making, such as coloured code. */
export const cleanSpans = (html: string): CleanHtml =>
  sanitised(html, { ALLOWED_TAGS: ["span"], ALLOWED_ATTR: ["class"] });

const sanitised = (html: string, policy: Config): CleanHtml =>
  DOMPurify.sanitize(html, { ...policy, RETURN_TRUSTED_TYPE: true }) as unknown as CleanHtml;

/** A picture that is all there: it asks nobody for anything. */
export const isPicture = (url: string): boolean => /^data:image\/(?:png|jpe?g|gif|webp|avif|bmp);base64,/i.test(url);

const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escaped = (text: string): string => text.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? "");
