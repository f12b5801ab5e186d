// The load client of the fan-out benchmark: N raw sockets. Counting must cost less than serving, so each socket only
// looks for the end of a window in its latest bytes; the first one also counts every event, and a wrong count is an error.

import { connect } from "node:net";
import { END_MARK } from "./fan-out-server.js";

export function runLoadClient(): void {
  let expected = 0;
  let counted = 0;
  process.on("disconnect", () => process.exit());
  process.on("message", (message: { type: string; url: string; readers: number; events: number }) => {
    if (message.type === "expect") {
      expected = message.events;
      counted = 0;
      process.send?.({ type: "expecting" });
    } else if (message.type === "connect") {
      void connectAll(new URL(message.url), message.readers, (count) => {
        counted += count;
        if (counted > expected) fail(new Error(`${counted} events arrived, not ${expected}`));
        process.send?.({ type: counted === expected ? "done" : "received" });
      }).catch(fail);
    }
  });
}

async function connectAll(url: URL, readers: number, onWindow: (count: number) => void): Promise<void> {
  let waiting = readers;
  let counted = 0;
  const onMark = (count: number) => {
    counted += count;
    waiting -= 1;
    if (waiting > 0) return;
    const events = counted;
    waiting = readers;
    counted = 0;
    onWindow(events);
  };
  for (let n = 0; n < readers; n += 1) await connectOne(url, n === 0, onMark);
  process.send?.({ type: "connected" });
}

/** Resolves once the stream has begun. `onMark` gets the events since the last mark where they are counted, else 0. */
function connectOne(
  { hostname, port, pathname }: URL,
  isCounting: boolean,
  onMark: (count: number) => void,
): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ port: Number(port), host: hostname });
    let carry: Buffer = Buffer.alloc(0);
    let count = 0;
    socket.write(`GET ${pathname} HTTP/1.1\r\nhost: ${hostname}\r\naccept: text/event-stream\r\n\r\n`);
    socket.on("error", fail);
    socket.once("data", () => resolve());
    socket.on("data", (bytes) => {
      if (isCounting) count += occurrences(bytes, '"partial_text"', carry);
      const tail = bytes.length >= 512 ? bytes.subarray(-512) : Buffer.concat([carry, bytes]).subarray(-512);
      carry = Buffer.from(tail);
      if (!tail.includes(END_MARK)) return;
      const events = count;
      carry = Buffer.alloc(0);
      count = 0;
      onMark(events);
    });
  });
}

/** How often `text` ends in `bytes`, seen as the continuation of `carry`. */
function occurrences(bytes: Buffer, text: string, carry: Buffer): number {
  const seam = carry.subarray(Math.max(0, carry.length - text.length + 1));
  const all = Buffer.concat([seam, bytes]);
  let count = 0;
  for (let at = all.indexOf(text); at >= 0; at = all.indexOf(text, at + 1)) count += 1;
  return count;
}

function fail(error: Error): void {
  process.stderr.write(`load client: ${error.message}\n`);
  process.exit(1);
}
