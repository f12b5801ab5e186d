// The latest items of a numbered sequence: appended at the end, dropped from the start, found by number in O(1). Its
// memory follows its size, both ways.

const MIN_SLOTS = 16;

/** Holds the items numbered from `first` up to, not including, `end`. */
export class SlidingWindow<T> {
  #slots: (T | undefined)[] = new Array(MIN_SLOTS);
  #first: number;
  #end: number;

  constructor(first: number) {
    this.#first = first;
    this.#end = first;
  }

  get first(): number {
    return this.#first;
  }

  get end(): number {
    return this.#end;
  }

  get size(): number {
    return this.#end - this.#first;
  }

  push(item: T): void {
    if (this.size === this.#slots.length) this.#resize(this.#slots.length * 2);
    this.#slots[this.#end % this.#slots.length] = item;
    this.#end += 1;
  }

  at(index: number): T {
    if (index < this.#first || index >= this.#end) {
      throw new RangeError(`${index} is not in [${this.#first}, ${this.#end})`);
    }
    return this.#slots[index % this.#slots.length] as T;
  }

  replace(index: number, item: T): void {
    this.at(index);
    this.#slots[index % this.#slots.length] = item;
  }

  shift(): T {
    const item = this.at(this.#first);
    this.#slots[this.#first % this.#slots.length] = undefined;
    this.#first += 1;
    // At a quarter, not at a half: a window that stays about as large as it is never moves.
    if (this.size < this.#slots.length / 4 && this.#slots.length > MIN_SLOTS) this.#resize(this.#slots.length / 2);
    return item;
  }

  #resize(length: number): void {
    const moved: (T | undefined)[] = new Array(length);
    for (let index = this.#first; index < this.#end; index += 1) moved[index % length] = this.at(index);
    this.#slots = moved;
  }
}
