// Bytes that come in pieces and are wanted in one.

const MAX_PIECES = 1_024;

export class HeldBytes {
  #pieces: Uint8Array[] = [];
  #length = 0;

  get length(): number {
    return this.#length;
  }

  add(piece: Uint8Array): void {
    if (piece.length === 0) return;
    this.#length += piece.length;
    this.#pieces.push(piece);
    // What comes byte by byte must not cost an object for each.
    if (this.#pieces.length > MAX_PIECES) this.#pieces = [Buffer.concat(this.#pieces)];
  }

  /** All of them; none are held afterwards. */
  take(): Buffer {
    const [only] = this.#pieces;
    const whole =
      only !== undefined && this.#pieces.length === 1
        ? Buffer.from(only.buffer, only.byteOffset, only.byteLength)
        : Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#length = 0;
    return whole;
  }
}
