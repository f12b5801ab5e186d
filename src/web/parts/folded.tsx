// A part that folds, and stays as the reader left it even where the list takes it out of the page meanwhile.

import type { ComponentChildren } from "preact";

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
  if (!kept.has(id)) kept.set(id, isOpenAtFirst);
  return (
    <details {...rest} open={kept.get(id)} onToggle={(event) => void kept.set(id, event.currentTarget.open)}>
      <summary>{summary}</summary>
      {children}
    </details>
  );
}
