// Readers of streams that cost as little as can be: raw sockets, whose bytes are only searched for what is measured.

import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** Opens a stream and resolves with its socket once the first bytes are there. `onData` gets every read. */
export async function openRaw(
  url: string,
  options: { headers?: Record<string, string>; method?: string; body?: string; onData?: (bytes: Buffer) => void } = {},
): Promise<Socket> {
  const { hostname, port, pathname, search } = new URL(url);
  const { method = "GET", body = "", onData = () => {} } = options;
  const headers = {
    host: `${hostname}:${port}`,
    accept: "text/event-stream",
    ...(body === "" ? {} : { "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) }),
    ...options.headers,
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const socket = connect({ port: Number(port), host: hostname });
  socket.on("error", (error) => {
    process.stderr.write(`reader: ${error.message}\n`);
    process.exit(1);
  });
  socket.on("data", onData);
  socket.write(`${method} ${pathname}${search} HTTP/1.1\r\n${lines.join("")}\r\n${body}`);
  await once(socket, "data");
  return socket;
}

/** Nanoseconds of a clock that all processes of the machine share. */
export const nowNs = (): number => Number(process.hrtime.bigint());

/** Finds `mark<digits>` in reads that may cut it anywhere. */
export class NumberFinder {
  readonly #pattern: RegExp;
  #carry = "";

  constructor(mark: string) {
    // What follows the digits is there too: a number that goes on in the next read is not taken for a whole one.
    this.#pattern = new RegExp(`${mark}(\\d+)[^\\d]`, "g");
  }

  /** @returns the numbers that are whole now. */
  push(bytes: Buffer): number[] {
    const text = this.#carry + bytes.toString("latin1");
    const found: number[] = [];
    let end = 0;
    for (const match of text.matchAll(this.#pattern)) {
      found.push(Number(match[1]));
      end = match.index + match[0].length;
    }
    this.#carry = text.slice(Math.max(end, text.length - 64));
    return found;
  }
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] as number;
}
