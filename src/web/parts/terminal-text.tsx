// What a command writes, in its colours. Pieces that stay are not rendered again while more comes.

import type { VNode } from "preact";
import { useMemo, useRef } from "preact/hooks";
import { BLANK, type Piece, screenOf } from "../terminal-text.js";

interface Shown {
  piece: Piece;
  element: VNode;
}

export function TerminalText({ text }: { text: string }) {
  const screen = useRef(BLANK);
  screen.current = useMemo(() => screenOf(text, screen.current), [text]);
  const shown = useRef<readonly Shown[]>([]);
  shown.current = screen.current.pieces.map((piece, index) => {
    const known = shown.current[index];
    if (known?.piece === piece) return known;
    const { text: part, look } = piece;
    return {
      piece,
      element: (
        <span key={index} class={look || undefined}>
          {part}
        </span>
      ),
    };
  });
  return <>{shown.current.map(({ element }) => element)}</>;
}
