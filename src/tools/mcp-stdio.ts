// An MCP server as a process of ours, spoken to over its standard input and output, one message a line. The SDK's own
// transport kills one process and reads without bound; this one owns a process group and bounds what it takes in.
//
// It runs in a session and process group of its own, with a watcher in it that reads a pipe only this process holds
// open: when we end, however we end, the whole group is killed. Its environment is what it is given, nothing else.

import { type ChildProcess, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import type { Clock } from "../clock.js";
import { HeldBytes } from "./held-bytes.js";
import { MAX_MESSAGE_BYTES, MESSAGE_COST, RATE } from "./mcp-limits.js";
import type { MessageGuard } from "./mcp-message.js";
import { START_WATCHER } from "./process-group.js";
import { Throttle } from "./throttle.js";

/** From the end of its input to SIGTERM, from there to SIGKILL, and from there to giving up. */
const END_GRACE_MS = 300;
const TERM_GRACE_MS = 1_500;
const KILL_GRACE_MS = 500;
/** What may wait for a server that does not read. */
const MAX_UNREAD_BYTES = 16_777_216;
const STDERR_TAIL_CHARS = 500;
const MESSAGES_PER_TURN = 64;

const LAUNCHER = `${START_WATCHER}
exec "$@"`;

/** The reason of an end that was ours. */
export const CLOSED = "it was closed";

export interface StdioOptions {
  command: string;
  args: readonly string[];
  environment: Readonly<Record<string, string>>;
  clock: Clock;
  guard: MessageGuard;
}

export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport["onmessage"];
  readonly #options: StdioOptions;
  readonly #stop = new AbortController();
  #child: ChildProcess | undefined;
  #dead: Promise<void> = Promise.resolve();
  #closed = false;
  #ending: Promise<void> | undefined;
  #reason: string | undefined;
  #stderr = "";

  constructor(options: StdioOptions) {
    this.#options = options;
  }

  /** Why it is over. */
  get reason(): string {
    return this.#reason ?? CLOSED;
  }

  /** The end of what it wrote to its standard error: for a log, and only with its settings out of it. */
  get said(): string {
    return this.#stderr.trim().replace(/\s+/g, " ");
  }

  start(): Promise<void> {
    const { command, args, environment } = this.#options;
    return new Promise((resolve, reject) => {
      const child = spawn("/bin/sh", ["-c", LAUNCHER, "omnid", command, ...args], {
        env: { ...environment },
        detached: true,
        stdio: ["pipe", "pipe", "pipe", "pipe"],
      });
      this.#child = child;
      this.#dead = new Promise((dead) => {
        child.once("error", (error) => {
          reject(error);
          this.#over(`it did not start: ${error.message}`);
          dead();
        });
        child.once("exit", (code, signal) => {
          this.#kill("SIGKILL");
          const finish = () => {
            cancel();
            this.#over(signal === null ? `it ended with exit code ${code}` : `it was ended by ${signal}`);
            dead();
          };
          // What it said last is still in the pipe; an escaped process may hold the pipe open for ever.
          const cancel = this.#options.clock.after(KILL_GRACE_MS, finish);
          child.once("close", finish);
        });
      });
      // Without a descriptor to spare there are no streams.
      for (const stream of child.stdio ?? []) stream?.on("error", () => {});
      child.once("spawn", () => {
        void this.#read(child.stdout as Readable);
        void this.#drain(child.stderr as Readable);
        resolve();
      });
    });
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin as Writable | undefined;
    if (this.#closed || stdin === undefined || !stdin.writable) throw new Error("the server is gone");
    if (stdin.writableLength > MAX_UNREAD_BYTES) {
      this.#fail(`it leaves more than ${MAX_UNREAD_BYTES} bytes of its input unread`);
      throw new Error("the server does not read");
    }
    this.#options.guard.sent(message);
    // Not awaited: whether it reads is its own affair, and every answer is waited for with a time-out.
    stdin.write(`${JSON.stringify(message)}\n`);
  }

  /** Tells everyone who waits for an answer at once; resolves when the process group is dead, after 2.3 s at most. */
  close(): Promise<void> {
    this.#over(CLOSED);
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const { clock } = this.#options;
    child.stdin?.end();
    const steps = [
      clock.after(END_GRACE_MS, () => {
        this.#kill("SIGTERM");
        // A stopped process takes no SIGTERM before it goes on.
        this.#kill("SIGCONT");
      }),
      clock.after(END_GRACE_MS + TERM_GRACE_MS, () => this.#kill("SIGKILL")),
    ];
    let giveUp: (() => void) | undefined;
    try {
      await Promise.race([
        this.#dead,
        new Promise<void>((resolve) => {
          giveUp = clock.after(END_GRACE_MS + TERM_GRACE_MS + KILL_GRACE_MS, resolve);
        }),
      ]);
    } finally {
      for (const cancel of steps) cancel();
      giveUp?.();
      for (const stream of child.stdio ?? []) stream?.destroy();
    }
  }

  /** A server that breaks the rules is ended. */
  #fail(reason: string): void {
    this.#reason ??= reason;
    void this.close();
  }

  #over(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#reason ??= reason;
    this.#stop.abort();
    this.onclose?.();
  }

  #kill(signal: NodeJS.Signals): void {
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // ESRCH: the group is gone, watcher and all.
    }
  }

  async #read(stdout: Readable): Promise<void> {
    const { signal } = this.#stop;
    const throttle = new Throttle(this.#options.clock, RATE);
    const held = new HeldBytes();
    let messages = 0;
    try {
      for await (const chunk of stdout as AsyncIterable<Buffer>) {
        await throttle.take(chunk.length, signal);
        let from = 0;
        for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
          held.add(chunk.subarray(from, end));
          from = end + 1;
          await throttle.take(MESSAGE_COST, signal);
          if (++messages % MESSAGES_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
          if (signal.aborted) return;
          this.#take(held.take());
        }
        held.add(chunk.subarray(from));
        if (held.length > MAX_MESSAGE_BYTES)
          return this.#fail(`it sent a message of more than ${MAX_MESSAGE_BYTES} bytes`);
      }
    } catch {
      // The pipe broke: the process is ending, and its end says so.
    } finally {
      stdout.destroy();
    }
  }

  #take(line: Buffer): void {
    if (line.length === 0) return;
    const admission = this.#options.guard.admit(line);
    if (admission.kind === "breach") {
      this.#fail(admission.reason);
      return;
    }
    const json = admission.kind === "instead" ? admission.json : line;
    try {
      this.onmessage?.(JSON.parse(json.toString("utf8")) as JSONRPCMessage);
    } catch {
      // Some servers print what is no message at all. It is none of a message's business.
      this.onerror?.(new Error("a line that is no message"));
    }
  }

  async #drain(stderr: Readable): Promise<void> {
    const throttle = new Throttle(this.#options.clock, RATE);
    const decoder = new TextDecoder();
    try {
      for await (const chunk of stderr as AsyncIterable<Buffer>) {
        this.#stderr = (this.#stderr + decoder.decode(chunk, { stream: true })).slice(-STDERR_TAIL_CHARS);
        await throttle.take(chunk.length, this.#stop.signal);
        if (this.#stop.signal.aborted) return;
      }
    } catch {
      // As in `#read`.
    } finally {
      stderr.destroy();
    }
  }
}
