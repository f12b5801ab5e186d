// What a long list knows between two renderings: heights, where the reader is, and what it owes to the scroll position.
//
// Invariant: what the reader looks at has the same place in the window before and after `take` and `measure`. Both know
// how far it moved in the list; the room above the rows (`lead`) makes up for that until `settle`.

import { indexAt, offsetsOf, type Range, rangeAt } from "./virtual-window.js";

export interface Keyed {
  readonly key: string;
}

const USUAL_HEIGHT = 96;
/** Before so many were measured their average says little. */
const FEW = 10;

export class ListMemory {
  isAtEnd = true;
  readonly #heights = new Map<string, number>();
  #sum = 0;
  #items: readonly Keyed[] = [];
  #offsets: Float64Array = new Float64Array(1);
  /** How much more room there is above the first row than its offset says; negative: less. */
  #lead = 0;
  /** What has to be added to the scroll position together with the next rendering. */
  #owed = 0;
  /** The top of the window, from the top of the list's element. */
  #top = 0;
  #viewHeight = 800;

  /** Where the window stands, and how high it is. */
  see(top: number, viewHeight: number): void {
    this.#top = top;
    this.#viewHeight = viewHeight;
  }

  /** The items of this rendering. */
  take(items: readonly Keyed[]): void {
    const before = this.#items;
    if (before === items) return;
    const anchor = indexAt(this.#offsets, this.#place);
    const key = before[anchor]?.key;
    const was = this.#offsets[anchor] ?? 0;
    this.#items = items;
    this.#offsets = offsetsOf(this.#allHeights());
    if (key === undefined) return;
    // Nearly always it is where it was, or as far from the end.
    const fromEnd = items.length - (before.length - anchor);
    const near = [anchor, fromEnd].find((index) => items[index]?.key === key);
    const place = near ?? items.findIndex((each) => each.key === key);
    if (place >= 0) this.#lead -= (this.#offsets[place] ?? 0) - was;
  }

  /** Heights of rows as they are now. @returns whether what is above the reader's place has changed */
  measure(heights: Iterable<readonly [key: string, height: number]>): boolean {
    let isChanged = false;
    for (const [key, height] of heights) {
      const known = this.#heights.get(key);
      if (known === height) continue;
      this.#heights.set(key, height);
      this.#sum += height - (known ?? 0);
      isChanged = true;
    }
    if (!isChanged) return false;
    const anchor = indexAt(this.#offsets, this.#place);
    const was = this.#offsets[anchor] ?? 0;
    this.#offsets = offsetsOf(this.#allHeights());
    const moved = (this.#offsets[anchor] ?? 0) - was;
    this.#lead -= moved;
    return moved !== 0;
  }

  /** What has to be in the page. */
  range(): Range {
    const place = this.isAtEnd ? this.#total - this.#viewHeight : this.#place;
    return rangeAt(this.#offsets, place, this.#viewHeight);
  }

  /** The room for what is not in the page. Where there is not enough of it above, the scroll position has to give way. */
  padding({ start, end }: Range): { top: number; bottom: number } {
    const offset = this.#offsets[start] ?? 0;
    if (this.isAtEnd || start === 0 || offset + this.#lead < 0) this.settle();
    return { top: offset + this.#lead, bottom: this.#total - (this.#offsets[end] ?? 0) };
  }

  /** Makes the room above what it should be, with the next rendering. @returns whether it was not */
  settle(): boolean {
    if (this.#lead === 0) return false;
    this.#owed -= this.#lead;
    this.#top -= this.#lead;
    this.#lead = 0;
    return true;
  }

  /** What is to be added to the scroll position now. */
  takeOwed(): number {
    const owed = this.#owed;
    this.#owed = 0;
    return owed;
  }

  /** The top of the window as an offset among the items. */
  get #place(): number {
    return this.#top - this.#lead;
  }

  get #total(): number {
    return this.#offsets.at(-1) ?? 0;
  }

  #allHeights(): number[] {
    const measured = this.#heights.size;
    const usual = measured < FEW ? USUAL_HEIGHT : this.#sum / measured;
    return this.#items.map(({ key }) => this.#heights.get(key) ?? usual);
  }
}
