// A part that folds, and stays as the reader left it even where the list takes it out of the page meanwhile.

import type { ComponentChildren } from "preact";
import { selectedId } from "../state.js";

const kept = new Map<string, boolean>();

/** What the reader chose for a part of the Session that is open. Keys are those of one Session. */
export function remembered(id: string, atFirst: boolean) {
  const name = `${selectedId.peek()} ${id}`;
  return {
    get: () => kept.get(name) ?? atFirst,
    set: (is: boolean) => void kept.set(name, is),
  };
}

interface FoldedProps {
  /** Names it; what it was left as is kept by this. */
  id: string;
  isOpenAtFirst: boolean;
  class: string;
  summary: ComponentChildren;
  children: ComponentChildren;
}

export function Folded({ id, isOpenAtFirst, summary, children, ...rest }: FoldedProps) {
  const own = remembered(id, isOpenAtFirst);
  // As it was when it first came; what comes later is the reader's.
  own.set(own.get());
  return (
    <details {...rest} open={own.get()} onToggle={(event) => own.set(event.currentTarget.open)}>
      <summary>{summary}</summary>
      {children}
    </details>
  );
}
