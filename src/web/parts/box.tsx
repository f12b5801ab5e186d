// Text that keeps its white space and scrolls in its own box, by keyboard too. Where it is decided on, what is below is
// told of: not every browser shows a scrollbar.

import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";

interface BoxProps {
  label: string;
  class: string;
  children: ComponentChildren;
}

/** Somebody is asked about what stands here. */
export const IsAsked = createContext(false);

export function Box(props: BoxProps) {
  const isAsked = useContext(IsAsked);
  return isAsked ? <Counted {...props} /> : <Plain {...props} />;
}

function Plain({ label, children, own, ...rest }: BoxProps & { own?: { current: HTMLPreElement | null } }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    // biome-ignore lint/a11y/useSemanticElements: white space is kept as it is, which only a pre does
    <pre {...rest} ref={own} tabIndex={0} role="group" aria-label={label}>
      {children}
    </pre>
  );
}

function Counted(props: BoxProps) {
  const own = useRef<HTMLPreElement>(null);
  const [below, setBelow] = useState(0);
  useEffect(() => {
    const box = own.current;
    if (box === null) return;
    const look = () => setBelow(linesBelow(box));
    const observer = new ResizeObserver(look);
    observer.observe(box);
    box.addEventListener("scroll", look);
    return () => {
      observer.disconnect();
      box.removeEventListener("scroll", look);
    };
  }, []);
  return (
    <div class="counted">
      <Plain {...props} own={own} />
      {below > 0 && (
        <p class="below" aria-hidden="true">
          {below === 1 ? "1 more line below" : `${below} more lines below`}
        </p>
      )}
    </div>
  );
}

/** As they are shown: a long one counts as often as it wraps. */
function linesBelow(box: HTMLElement): number {
  const { lineHeight, paddingBottom } = getComputedStyle(box);
  const hidden = box.scrollHeight - box.clientHeight - box.scrollTop - Number.parseFloat(paddingBottom);
  return Math.max(0, Math.round(hidden / Number.parseFloat(lineHeight)));
}
