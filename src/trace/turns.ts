/** Turns that are taken one after the other, in the order in which they were asked for. */
export class Turns {
  #last: Promise<void> = Promise.resolve();

  /** Resolves with what ends the turn, once all before it have ended. */
  async turn(): Promise<() => void> {
    const before = this.#last;
    let end = () => {};
    this.#last = new Promise((resolve) => {
      end = resolve;
    });
    await before;
    return end;
  }
}
