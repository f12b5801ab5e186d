// A long list of which only what is near the window is in the page. What the reader looks at stays where it is while
// things above it grow, are loaded or turn out to be of another height; at the end the list follows what comes.
//
// Heights are measured as rows appear; until then a row counts as an average one.

import type { ComponentChildren } from "preact";
import { useCallback, useLayoutEffect, useRef, useState } from "preact/hooks";
import { indexAt, offsetsOf, type Range, rangeAt } from "../virtual-window.js";

interface Keyed {
  readonly key: string;
}

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

const USUAL_HEIGHT = 96;
const NEAR_START_PX = 800;
/** This close to the end counts as being there. */
const AT_END_PX = 48;

/** What is known of the list between two renderings. */
interface Memory {
  heights: Map<string, number>;
  sum: number;
  keys: readonly Keyed[];
  offsets: Float64Array;
  isAtEnd: boolean;
  /** Where the scroller stood when it was last seen. */
  top: number;
  viewHeight: number;
}

export function VirtualList<T extends Keyed>(props: VirtualListProps<T>) {
  const { items, render, head, empty, onNearStart, label } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const host = useRef<HTMLDivElement>(null);
  const memory = useRef<Memory>({
    heights: new Map(),
    sum: 0,
    keys: [],
    offsets: new Float64Array(1),
    isAtEnd: true,
    top: 0,
    viewHeight: 800,
  }).current;
  const [, redraw] = useState(0);
  const [isAway, setAway] = useState(false);

  const shift = takeItems(memory, items);
  const listTop = host.current?.offsetTop ?? 0;
  const wanted = memory.isAtEnd ? (memory.offsets.at(-1) ?? 0) : memory.top + shift - listTop;
  const range = rangeAt(memory.offsets, memory.isAtEnd ? wanted - memory.viewHeight : wanted, memory.viewHeight);
  const drawn = useRef<Range>(range);
  drawn.current = range;

  const look = useCallback(() => {
    const box = scroller.current;
    if (box === null) return;
    memory.top = box.scrollTop;
    memory.viewHeight = box.clientHeight;
    memory.isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < AT_END_PX;
    setAway(!memory.isAtEnd);
    if (box.scrollTop < NEAR_START_PX) onNearStart();
    const next = rangeAt(memory.offsets, memory.top - (host.current?.offsetTop ?? 0), memory.viewHeight);
    if (next.start !== drawn.current.start || next.end !== drawn.current.end) redraw((count) => count + 1);
  }, [memory, onNearStart]);

  // Before anything is painted: back to where the reader was.
  useLayoutEffect(() => {
    const box = scroller.current;
    if (box === null) return;
    if (memory.isAtEnd) box.scrollTop = box.scrollHeight;
    else if (shift !== 0) box.scrollTop = memory.top + shift;
    memory.top = box.scrollTop;
    memory.viewHeight = box.clientHeight;
    if (box.scrollHeight <= box.clientHeight) onNearStart();
  });

  useMeasuring(scroller, host, memory, items, () => redraw((count) => count + 1));

  const toEnd = () => {
    memory.isAtEnd = true;
    setAway(false);
    redraw((count) => count + 1);
  };
  const { offsets } = memory;
  const total = offsets.at(-1) ?? 0;
  const padding = {
    paddingTop: `${offsets[range.start] ?? 0}px`,
    paddingBottom: `${total - (offsets[range.end] ?? 0)}px`,
  };
  return (
    <>
      {/* Told in whole sentences by the announcer: word by word would be noise. */}
      <div id="scroller" ref={scroller} role="log" aria-live="off" aria-label={label} tabIndex={-1} onScroll={look}>
        <div class="column">
          {head}
          {items.length === 0 && empty}
          <div id="items" class="items" ref={host} style={padding}>
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

/** Takes the items of this rendering. @returns how far what the reader looks at has moved */
function takeItems(memory: Memory, items: readonly Keyed[]): number {
  const before = memory.keys;
  if (before === items) return 0;
  const old = memory.offsets;
  const anchor = before.length === 0 ? undefined : indexAt(old, memory.top);
  memory.keys = items;
  memory.offsets = offsetsOf(heightsOf(memory, items));
  const key = anchor === undefined ? undefined : before[anchor]?.key;
  if (key === undefined || anchor === undefined) return 0;
  // Nearly always it is where it was, or as far from the end.
  const fromEnd = items.length - (before.length - anchor);
  const place =
    [anchor, fromEnd].find((index) => items[index]?.key === key) ?? items.findIndex((each) => each.key === key);
  return place < 0 ? 0 : (memory.offsets[place] ?? 0) - (old[anchor] ?? 0);
}

function heightsOf({ heights, sum }: Memory, items: readonly Keyed[]): number[] {
  const usual = heights.size < 10 ? USUAL_HEIGHT : sum / heights.size;
  return items.map(({ key }) => heights.get(key) ?? usual);
}

function useMeasuring(
  scroller: { current: HTMLDivElement | null },
  host: { current: HTMLDivElement | null },
  memory: Memory,
  items: readonly Keyed[],
  redraw: () => void,
): void {
  const observer = useRef<ResizeObserver | undefined>(undefined);
  const latest = useRef({ items, redraw });
  latest.current = { items, redraw };
  useLayoutEffect(() => {
    observer.current = new ResizeObserver(() => {
      const box = scroller.current;
      if (box === null) return;
      const moved = measure(memory, latest.current.items, host.current);
      if (memory.isAtEnd) box.scrollTop = box.scrollHeight;
      else if (moved !== 0) box.scrollTop += moved;
      memory.top = box.scrollTop;
      memory.viewHeight = box.clientHeight;
      if (moved !== 0) latest.current.redraw();
    });
    if (scroller.current !== null) observer.current.observe(scroller.current);
    return () => observer.current?.disconnect();
  }, [memory, scroller, host]);
  useLayoutEffect(() => {
    // Observing again what is observed already costs nothing and fires nothing.
    for (const row of host.current?.children ?? []) observer.current?.observe(row);
  });
}

/** Takes the heights of the rows in the page. @returns how far those above the reader's place have grown */
function measure(memory: Memory, items: readonly Keyed[], host: HTMLElement | null): number {
  if (host === null) return 0;
  const old = memory.offsets;
  const anchor = indexAt(old, memory.top - host.offsetTop);
  const anchorKey = items[anchor]?.key;
  let isChanged = false;
  for (const row of host.children) {
    const { key = "" } = (row as HTMLElement).dataset;
    const height = row.getBoundingClientRect().height;
    const known = memory.heights.get(key);
    if (known === height) continue;
    memory.heights.set(key, height);
    memory.sum += height - (known ?? 0);
    isChanged = true;
  }
  if (!isChanged) return 0;
  memory.offsets = offsetsOf(heightsOf(memory, items));
  return anchorKey === undefined ? 0 : (memory.offsets[anchor] ?? 0) - (old[anchor] ?? 0);
}
