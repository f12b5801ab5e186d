// A text of the model: one element a block, so that what stands stays as it is while the rest is being written.

import type { VNode } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { highlighted } from "../highlight.js";
import { type Block, NOTHING, rendered } from "../markdown.js";
import { copied } from "./copy-button.js";
import { LongProse } from "./long-prose.js";

interface Shown {
  block: Block;
  isOver: boolean;
  element: VNode;
}

interface ProseProps {
  text: string;
  /** More of it comes. */
  isOpen?: boolean;
  /** Names it; a text without a name is not offered to be formatted where it is very long. */
  id?: string;
}

export function Prose({ text, isOpen = false, id }: ProseProps) {
  const before = useRef(NOTHING);
  before.current = useMemo(() => rendered(text, before.current), [text]);
  const { blocks } = before.current;
  // The same element again is not compared, let alone rendered: a long answer has thousands of them.
  const shown = useRef<Shown[]>([]);
  shown.current = blocks.map((block, index) => {
    const isOver = !isOpen || index < blocks.length - 1;
    const known = shown.current[index];
    if (known?.block === block && known.isOver === isOver) return known;
    return { block, isOver, element: <ProseBlock key={index} block={block} isOver={isOver} /> };
  });
  const elements = shown.current.map(({ element }) => element);
  const isLong = !isOpen && id !== undefined && blocks[0]?.isPlain === true && text.length > SHORT;
  return (
    <div class="prose" dir="auto">
      {isLong ? (
        <LongProse id={id} text={text} plain={elements} format={(section) => <Prose text={section} />} />
      ) : (
        elements
      )}
    </div>
  );
}

/** A shorter text that is plain cannot be read as Markdown, in whatever sections. */
const SHORT = 20_000;

function ProseBlock({ block, isOver }: { block: Block; isOver: boolean }) {
  const host = useRef<HTMLDivElement>(null);
  const { html, hasCode, isPlain } = block;
  const text = String(html);
  useEffect(() => {
    if (hasCode && isOver && host.current !== null) dressCode(host.current);
  }, [text, hasCode, isOver]);
  // It went through the sanitiser.
  const name = isPlain ? "block as-written" : "block";
  return useMemo(() => <div ref={host} class={name} dangerouslySetInnerHTML={{ __html: html }} />, [text, name]);
}

/** Gives each piece of code its language, a button to copy it, and colours. */
function dressCode(host: HTMLElement): void {
  for (const pre of host.querySelectorAll("pre")) {
    const code = pre.querySelector("code");
    if (code === null || pre.parentElement?.className === "code") continue;
    const text = code.textContent ?? "";
    const language = /language-([^\s]+)/.exec(code.className)?.[1] ?? "";
    const frame = document.createElement("div");
    frame.className = "code";
    const bar = document.createElement("div");
    bar.className = "code-bar";
    const label = document.createElement("span");
    label.textContent = language;
    bar.append(label, copyButton(text));
    pre.replaceWith(frame);
    pre.tabIndex = 0;
    pre.setAttribute("role", "group");
    pre.setAttribute("aria-label", language === "" ? "Code" : `Code, ${language}`);
    frame.append(bar, pre);
    void highlighted(text, language).then((html) => {
      if (html !== undefined && code.textContent === text) code.innerHTML = html;
    });
  }
}

function copyButton(text: string): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    button.textContent = (await copied(text)) ? "Copied" : "Not copied";
    setTimeout(() => {
      button.textContent = "Copy";
    }, 1_500);
  });
  return button;
}
