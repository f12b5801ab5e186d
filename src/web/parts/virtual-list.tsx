// A long list of which only what is near the window is in the page. What the reader looks at stays where it is while
// things above it grow, are loaded or turn out to be of another height; at the end the list follows what comes.
//
// Heights are measured as rows appear; until then a row counts as an average one. What is found out about rows above
// the reader's place is taken from the empty room above them, not added to the scroll position: that would break off a
// scroll that is under way. It is settled once the scrolling rests, or where there is no such room.

import type { ComponentChildren } from "preact";
import { useCallback, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Keyed, ListMemory } from "../list-memory.js";
import type { Range } from "../virtual-window.js";

interface VirtualListProps<T extends Keyed> {
  items: readonly T[];
  render: (item: T) => ComponentChildren;
  /** Stands above the items, always of the same height. */
  head: ComponentChildren;
  /** Stands in the place of the items where there are none. */
  empty: ComponentChildren;
  /** The reader comes near the beginning. */
  onNearStart: () => void;
  label: string;
}

const NEAR_START_PX = 800;
/** This close to the end counts as being there. */
const AT_END_PX = 48;
/** No scrolling for this long is rest. */
const REST_MS = 150;

export function VirtualList<T extends Keyed>(props: VirtualListProps<T>) {
  const { items, render, head, empty, onNearStart, label } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const host = useRef<HTMLDivElement>(null);
  const kept = useRef<ListMemory | null>(null);
  kept.current ??= new ListMemory();
  const memory = kept.current;
  const [, setCount] = useState(0);
  const redraw = useCallback(() => setCount((count) => count + 1), []);
  const [isAway, setAway] = useState(false);

  memory.take(items);
  const range = memory.range();
  const drawn = useRef<Range>(range);
  drawn.current = range;
  const padding = memory.padding(range);

  const rest = useRef(0);
  const look = useCallback(() => {
    const box = scroller.current;
    if (box === null) return;
    memory.see(box.scrollTop - (host.current?.offsetTop ?? 0), box.clientHeight);
    memory.isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < AT_END_PX;
    setAway(!memory.isAtEnd);
    if (box.scrollTop < NEAR_START_PX) onNearStart();
    const next = memory.range();
    if (next.start !== drawn.current.start || next.end !== drawn.current.end) redraw();
    clearTimeout(rest.current);
    rest.current = window.setTimeout(() => {
      if (memory.settle()) redraw();
    }, REST_MS);
  }, [memory, onNearStart, redraw]);

  // Before anything is painted.
  useLayoutEffect(() => {
    const box = scroller.current;
    if (box === null) return;
    const owed = memory.takeOwed();
    if (memory.isAtEnd) box.scrollTop = box.scrollHeight;
    else if (owed !== 0) box.scrollTop += owed;
    memory.see(box.scrollTop - (host.current?.offsetTop ?? 0), box.clientHeight);
    if (box.scrollHeight <= box.clientHeight) onNearStart();
  });
  useLayoutEffect(() => () => clearTimeout(rest.current), []);
  useMeasuring(scroller, host, memory, redraw);

  const toEnd = () => {
    memory.isAtEnd = true;
    setAway(false);
    redraw();
  };
  return (
    <>
      {/* Told in whole sentences by the announcer: word by word would be noise. */}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <div id="scroller" ref={scroller} role="log" aria-live="off" aria-label={label} tabIndex={0} onScroll={look}>
        <div class="column">
          {head}
          {items.length === 0 && empty}
          <div
            id="items"
            class="items"
            ref={host}
            style={{ paddingTop: `${padding.top}px`, paddingBottom: `${padding.bottom}px` }}
          >
            {items.slice(range.start, range.end).map((item) => (
              <div class="row" key={item.key} data-key={item.key}>
                {render(item)}
              </div>
            ))}
          </div>
        </div>
      </div>
      {isAway && items.length > 0 && (
        <button id="to-end" type="button" onClick={toEnd}>
          ↓ Latest
        </button>
      )}
    </>
  );
}

/** Takes the heights of the rows in the page, as they come and change. */
function useMeasuring(
  scroller: { current: HTMLDivElement | null },
  host: { current: HTMLDivElement | null },
  memory: ListMemory,
  redraw: () => void,
): void {
  const observer = useRef<ResizeObserver | undefined>(undefined);
  useLayoutEffect(() => {
    observer.current = new ResizeObserver(() => {
      const box = scroller.current;
      if (box === null || host.current === null) return;
      const heights: [string, number][] = [];
      for (const row of host.current.children) {
        heights.push([(row as HTMLElement).dataset.key ?? "", row.getBoundingClientRect().height]);
      }
      const hasMoved = memory.measure(heights);
      if (memory.isAtEnd) box.scrollTop = box.scrollHeight;
      memory.see(box.scrollTop - host.current.offsetTop, box.clientHeight);
      if (hasMoved) redraw();
    });
    if (scroller.current !== null) observer.current.observe(scroller.current);
    return () => observer.current?.disconnect();
  }, [memory, scroller, host, redraw]);
  useLayoutEffect(() => {
    // Observing again what is observed already costs nothing and fires nothing.
    for (const row of host.current?.children ?? []) observer.current?.observe(row);
  });
}
