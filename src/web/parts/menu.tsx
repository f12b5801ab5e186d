// A button with a list of actions. The browser keeps it on top and closes it.

import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";

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

const MARGIN_PX = 8;

export function Menu({ label, entries, children, id, ...rest }: MenuProps) {
  const popover = useId();
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const place = () => {
    const box = list.current;
    const from = button.current?.getBoundingClientRect();
    if (box === null || from === undefined) return;
    const { offsetWidth: width, offsetHeight: height } = box;
    const fitsBelow = from.bottom + height + MARGIN_PX < innerHeight;
    box.style.top = `${fitsBelow ? from.bottom + 4 : Math.max(MARGIN_PX, from.top - height - 4)}px`;
    box.style.left = `${Math.max(MARGIN_PX, Math.min(from.right - width, innerWidth - width - MARGIN_PX))}px`;
    items(box)[0]?.focus();
  };
  const onKey = (event: KeyboardEvent) => {
    const all = items(list.current);
    const at = all.indexOf(document.activeElement as HTMLButtonElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined || all.length === 0) return;
    event.preventDefault();
    all[(at + step + all.length) % all.length]?.focus();
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
        onToggle={(event) => {
          if ((event as unknown as { newState: string }).newState === "open") place();
        }}
        onKeyDown={onKey}
      >
        {entries.map(({ text, run, isDanger, isDisabled }) => (
          <button
            key={text}
            type="button"
            role="menuitem"
            class={isDanger ? "danger" : ""}
            disabled={isDisabled}
            onClick={() => {
              list.current?.hidePopover();
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
