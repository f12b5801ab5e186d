// @ts-check
// Event streams by the WHATWG rules, from text that may be cut anywhere: LF, CR and CRLF, comments, a leading BOM,
// several data lines. An event without data is none, and what has not ended when the stream breaks off is dropped.

/** @import { StreamEvent } from "./types.d.ts" */

/**
 * Makes a parser of one connection.
 * @returns {(text: string) => StreamEvent[]} takes the next piece of text and gives the events that it completes
 */
export function sseParser() {
  let rest = "";
  // What is before this was searched already: a long line in many pieces is scanned once.
  let searched = 0;
  let isFirst = true;
  let skipLf = false;
  let event = "";
  /** @type {string[]} */
  let data = [];
  /** @type {string | undefined} */
  let id;

  /** @param {string} line @param {StreamEvent[]} due */
  const take = (line, due) => {
    if (line === "") {
      if (data.length > 0) due.push({ event, data: data.join("\n"), ...(id === undefined ? {} : { id }) });
      event = "";
      data = [];
      id = undefined;
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const from = colon < 0 ? line.length : line[colon + 1] === " " ? colon + 2 : colon + 1;
    const value = line.slice(from);
    if (field === "data") data.push(value);
    else if (field === "event") event = value;
    else if (field === "id" && !value.includes("\0")) id = value;
  };

  return (text) => {
    /** @type {StreamEvent[]} */
    const due = [];
    let piece = text;
    if (isFirst && piece !== "") {
      isFirst = false;
      if (piece.startsWith("\uFEFF")) piece = piece.slice(1);
    }
    if (skipLf && piece !== "") {
      skipLf = false;
      if (piece.startsWith("\n")) piece = piece.slice(1);
    }
    rest += piece;
    let start = 0;
    for (;;) {
      const end = lineEnd(rest, Math.max(start, searched));
      if (end < 0) break;
      take(rest.slice(start, end), due);
      start = end + 1;
      if (rest[end] === "\r") {
        if (start === rest.length) skipLf = true;
        else if (rest[start] === "\n") start += 1;
      }
    }
    rest = rest.slice(start);
    searched = rest.length;
    return due;
  };
}

/** @param {string} text @param {number} from */
function lineEnd(text, from) {
  const lf = text.indexOf("\n", from);
  const cr = text.slice(from, lf < 0 ? text.length : lf).indexOf("\r");
  return cr < 0 ? lf : from + cr;
}

/**
 * The events of an answer's body, until it ends or breaks.
 * @param {ReadableStream<Uint8Array>} body
 * @param {() => void} onBytes called for every piece, also for heartbeats
 * @returns {AsyncGenerator<StreamEvent[], void, void>} the events of one piece at a time
 */
export async function* eventsOf(body, onBytes) {
  const parse = sseParser();
  // The parser takes the BOM off, once.
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      onBytes();
      const events = parse(decoder.decode(value, { stream: true }));
      if (events.length > 0) yield events;
    }
  } finally {
    // Already closed or broken when the stream ended by itself; nothing is left to say then.
    await reader.cancel().catch(() => {});
  }
}
