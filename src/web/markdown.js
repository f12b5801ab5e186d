// @ts-check
// The Markdown that models write, as data: blocks and, in them, spans. What is not understood stays text. There is no
// HTML in it: a tag is text like any other.

/**
 * @typedef {{ kind: "text", text: string } | { kind: "code", text: string } | { kind: "strong" | "em", spans: Span[] } | { kind: "link", href: string, spans: Span[] }} Span
 * @typedef {{ kind: "paragraph" | "quote", source: string } | { kind: "heading", level: number, source: string } | { kind: "rule", source: string } | { kind: "code", language: string, source: string } | { kind: "list", ordered: boolean, start: number, items: string[], source: string } | { kind: "table", rows: string[][], source: string }} Block
 */

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`\s]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ROW = /^\s*\|(.+)\|\s*$/;
const DIVIDER = /^[\s|:-]+$/;

/** @param {string} text @returns {Block[]} */
export function blocksOf(text) {
  const lines = text.split("\n");
  /** @type {Block[]} */
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    if (line.trim() === "") {
      at += 1;
      continue;
    }
    const [block, next] =
      fence(lines, at) ?? heading(line, at) ?? list(lines, at) ?? table(lines, at) ?? paragraph(lines, at);
    blocks.push(block);
    at = next;
  }
  return blocks;
}

/** @param {string[]} lines @param {number} at @returns {[Block, number] | undefined} */
function fence(lines, at) {
  const open = FENCE.exec(lines[at] ?? "");
  const mark = open?.[1];
  if (open === null || mark === undefined) return undefined;
  const isEnd = (/** @type {string} */ line) => {
    const bare = line.trim();
    return bare.length >= mark.length && bare === (mark[0] ?? "").repeat(bare.length);
  };
  let end = at + 1;
  while (end < lines.length && !isEnd(lines[end] ?? "")) end += 1;
  return [{ kind: "code", language: open[2] ?? "", source: lines.slice(at + 1, end).join("\n") }, end + 1];
}

/** @param {string} line @param {number} at @returns {[Block, number] | undefined} */
function heading(line, at) {
  if (RULE.test(line)) return [{ kind: "rule", source: line }, at + 1];
  const found = HEADING.exec(line);
  if (found === null) return undefined;
  return [{ kind: "heading", level: (found[1] ?? "#").length, source: found[2] ?? "" }, at + 1];
}

/** @param {string[]} lines @param {number} at @returns {[Block, number] | undefined} */
function list(lines, at) {
  const first = ITEM.exec(lines[at] ?? "");
  if (first === null) return undefined;
  const ordered = /\d/.test(first[2] ?? "");
  /** @type {string[]} */
  const items = [];
  let end = at;
  for (; end < lines.length; end += 1) {
    const line = lines[end] ?? "";
    const item = ITEM.exec(line);
    if (item !== null && /\d/.test(item[2] ?? "") === ordered && (item[1] ?? "").length < 2) items.push(item[3] ?? "");
    else if (/^\s{2,}\S/.test(line)) items.push(`${items.pop() ?? ""}\n${line.trim()}`);
    else break;
  }
  const start = ordered ? Number.parseInt(first[2] ?? "1", 10) : 1;
  return items.length === 0
    ? undefined
    : [{ kind: "list", ordered, start, items, source: lines.slice(at, end).join("\n") }, end];
}

/** @param {string[]} lines @param {number} at @returns {[Block, number] | undefined} */
function table(lines, at) {
  const divider = lines[at + 1] ?? "";
  if (!ROW.test(lines[at] ?? "") || !ROW.test(divider) || !DIVIDER.test(divider)) return undefined;
  let end = at;
  while (end < lines.length && ROW.test(lines[end] ?? "")) end += 1;
  const rows = [lines[at] ?? "", ...lines.slice(at + 2, end)].map((row) =>
    (ROW.exec(row)?.[1] ?? "").split("|").map((cell) => cell.trim()),
  );
  return [{ kind: "table", rows, source: lines.slice(at, end).join("\n") }, end];
}

/** @param {string[]} lines @param {number} at @returns {[Block, number]} */
function paragraph(lines, at) {
  const isQuote = /^ {0,3}>/.test(lines[at] ?? "");
  let end = at + 1;
  while (end < lines.length) {
    const line = lines[end] ?? "";
    if (line.trim() === "" || FENCE.test(line) || HEADING.test(line) || ITEM.test(line)) break;
    if (/^ {0,3}>/.test(line) !== isQuote) break;
    end += 1;
  }
  const own = lines.slice(at, end);
  if (isQuote) return [{ kind: "quote", source: own.map((line) => line.replace(/^ {0,3}> ?/, "")).join("\n") }, end];
  return [{ kind: "paragraph", source: own.join("\n") }, end];
}

const SPAN =
  /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\*\*(?=\S)([\s\S]*?\S)\*\*|(?<![\w*])\*(?=[^\s*.,/\\])([^*\n]*?[^\s*/])\*(?![\w*])|\[([^\][\n]{1,500})\]\((https?:\/\/[^\s()]{1,2000})\)|(https?:\/\/[^\s<>"'`)\]]{1,2000}[^\s<>"'`)\].,:;!?])/;

/** Longer paragraphs are no prose, and not worth the search. */
const MAX_PROSE = 20_000;

/** @param {string} source @returns {Span[]} */
export function spansOf(source) {
  if (source.length > MAX_PROSE) return [{ kind: "text", text: source }];
  /** @type {Span[]} */
  const spans = [];
  let rest = source;
  for (;;) {
    const found = SPAN.exec(rest);
    if (found === null) break;
    if (found.index > 0) spans.push({ kind: "text", text: rest.slice(0, found.index) });
    const [whole, , code, strong, em, label, href, bare] = found;
    if (code !== undefined)
      spans.push({ kind: "code", text: code.trim() === "" ? code : code.replace(/^ (.*) $/s, "$1") });
    else if (strong !== undefined) spans.push({ kind: "strong", spans: spansOf(strong) });
    else if (em !== undefined) spans.push({ kind: "em", spans: spansOf(em) });
    else if (href !== undefined) spans.push({ kind: "link", href, spans: [{ kind: "text", text: label ?? href }] });
    else spans.push({ kind: "link", href: bare ?? "", spans: [{ kind: "text", text: bare ?? "" }] });
    rest = rest.slice(found.index + whole.length);
  }
  if (rest !== "") spans.push({ kind: "text", text: rest });
  return spans;
}
