// The latest items of a numbered sequence: appended at the end, dropped from the start, found by number in O(1).

/** Holds the items numbered from `first` up to, not including, `end`. */
export class SlidingWindow<T> {
  #slots: (T | undefined)[] = new Array(16);
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
    if (this.size === this.#slots.length) this.#grow();
    this.#slots[this.#end % this.#slots.length] = item;
    this.#end += 1;
  }

  at(index: number): T {
    if (index < this.#first || index >= this.#end) {
      throw new RangeError(`${index} is not in [${this.#first}, ${this.#end})`);
    }
    return this.#slots[index % this.#slots.length] as T;
  }

  shift(): T {
    const item = this.at(this.#first);
    this.#slots[this.#first % this.#slots.length] = undefined;
    this.#first += 1;
    return item;
  }

  #grow(): void {
    const larger: (T | undefined)[] = new Array(this.#slots.length * 2);
    for (let index = this.#first; index < this.#end; index += 1) larger[index % larger.length] = this.at(index);
    this.#slots = larger;
  }
}
