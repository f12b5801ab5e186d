// A text that is shown as it is written because it is very long, and formatted where somebody wants it: section by
// section, as each comes near the window, so that the page never stands still.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { sectionsOf } from "../markdown-sections.js";
import { remembered } from "./folded.js";

/** `plain` is the text as it is written; `format` makes a section of it what it means. */
interface LongProseProps {
  id: string;
  text: string;
  plain: ComponentChildren;
  format: (section: string) => ComponentChildren;
}

export function LongProse({ id, text, plain, format }: LongProseProps) {
  const kept = remembered(`format ${id}`, false);
  const [isFormatted, setFormatted] = useState(kept.get());
  const sections = useMemo(() => (isFormatted ? sectionsOf(text) : []), [text, isFormatted]);
  const choose = (next: boolean) => {
    kept.set(next);
    setFormatted(next);
  };
  return (
    <>
      <p class="note long-note">
        {isFormatted ? "This text is very long." : "This text is very long, and shown as it is written."}
        <button type="button" class="plain" onClick={() => choose(!isFormatted)}>
          {isFormatted ? "As it is written" : "Format anyway"}
        </button>
      </p>
      {isFormatted ? sections.map((section, index) => <Section key={index} text={section} format={format} />) : plain}
    </>
  );
}

/** This far from the window it is made ready, in pixels. */
const NEAR_PX = 1_000;

function Section({ text, format }: { text: string; format: LongProseProps["format"] }) {
  const host = useRef<HTMLDivElement>(null);
  const [isNear, setNear] = useState(false);
  useEffect(() => {
    const node = host.current;
    if (node === null || isNear) return;
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some(({ isIntersecting }) => isIntersecting)) setNear(true);
      },
      { root: document.getElementById("scroller"), rootMargin: `${NEAR_PX}px 0px` },
    );
    observer.observe(node);
    return () => observer.disconnect();
  }, [isNear]);
  return (
    <div ref={host} class={isNear ? "section" : "section as-written"}>
      {isNear ? format(text) : <pre class="plain">{text}</pre>}
    </div>
  );
}
