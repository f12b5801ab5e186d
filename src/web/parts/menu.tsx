// A button with a list of actions. The browser keeps it on top and closes it.

import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";
import { moveByArrow, moveToEnds, promptBox, useHandOn } from "./focus.js";

export interface MenuEntry {
  text: string;
  run: () => void;
  isDanger?: boolean;
  isDisabled?: boolean;
}

interface MenuProps {
  label: string;
  id?: string;
  class?: string;
  entries: readonly MenuEntry[];
  children: ComponentChildren;
}

const GAP_PX = 4;

export function Menu({ label, entries, children, id, ...rest }: MenuProps) {
  const popover = useId();
  const button = useHandOn<HTMLButtonElement>(promptBox);
  const list = useRef<HTMLDivElement>(null);
  // Before it is shown, so that it is nowhere else first; its size is not known by then.
  const place = () => {
    const box = list.current;
    const from = button.current?.getBoundingClientRect();
    if (box === null || from === undefined) return;
    const isBelow = from.bottom < innerHeight * 0.6;
    box.style.top = isBelow ? `${from.bottom + GAP_PX}px` : "auto";
    box.style.bottom = isBelow ? "auto" : `${innerHeight - from.top + GAP_PX}px`;
    // To the left of the button's right edge where there is room, to the right of its left edge elsewhere.
    const isLeft = from.right > innerWidth * 0.4;
    box.style.right = isLeft ? `${innerWidth - from.right}px` : "auto";
    box.style.left = isLeft ? "auto" : `${from.left}px`;
  };
  return (
    <>
      <button
        ref={button}
        id={id}
        type="button"
        class={rest.class ?? "quiet-icon"}
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        popovertarget={popover}
      >
        {children}
      </button>
      <div
        ref={list}
        id={popover}
        popover="auto"
        role="menu"
        aria-label={label}
        class="menu"
        tabIndex={-1}
        onBeforeToggle={(event) => {
          if ((event as unknown as { newState: string }).newState === "open") place();
        }}
        onKeyDown={(event) => {
          moveByArrow(event, items(list.current));
          moveToEnds(event, items(list.current));
        }}
      >
        {entries.map(({ text, run, isDanger, isDisabled }, index) => (
          <button
            key={text}
            type="button"
            role="menuitem"
            // The browser goes to it as it shows the menu.
            autofocus={index === 0}
            class={isDanger ? "danger" : ""}
            disabled={isDisabled}
            onClick={() => {
              list.current?.hidePopover();
              button.current?.focus();
              run();
            }}
          >
            {text}
          </button>
        ))}
      </div>
    </>
  );
}

const items = (box: HTMLElement | null): HTMLButtonElement[] => [
  ...(box?.querySelectorAll<HTMLButtonElement>("button:not(:disabled)") ?? []),
];
