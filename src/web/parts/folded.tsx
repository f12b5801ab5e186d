// A part that folds, and stays as the reader left it even where the list takes it out of the page meanwhile.

import type { ComponentChildren } from "preact";
import { selectedId } from "../state.js";

const kept = new Map<string, boolean>();

interface FoldedProps {
  /** Names it; what it was left as is kept by this. */
  id: string;
  isOpenAtFirst: boolean;
  class: string;
  summary: ComponentChildren;
  children: ComponentChildren;
}

export function Folded({ id, isOpenAtFirst, summary, children, ...rest }: FoldedProps) {
  // Keys are those of one Session.
  const name = `${selectedId.peek()} ${id}`;
  if (!kept.has(name)) kept.set(name, isOpenAtFirst);
  return (
    <details {...rest} open={kept.get(name)} onToggle={(event) => void kept.set(name, event.currentTarget.open)}>
      <summary>{summary}</summary>
      {children}
    </details>
  );
}
