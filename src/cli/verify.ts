// `omnid verify`: holds a Trace to the protocol's guarantees, from a file or from a Session of a running server. Read as
// a stream, line by line, so a Trace may be larger than memory. Lines end at LF only: U+2028 and its kind are content.

import { createReadStream } from "node:fs";
import { EXIT_UNREACHABLE } from "../exit-codes.js";
import type { OmniMessage } from "../protocol/message.js";
import { classify, StreamValidator } from "../protocol/validate.js";
import { printable } from "./printable.js";

export interface VerifyOptions {
  /** Bearer token for a server that wants one. */
  token?: string;
  /** Prints every violation, not only the first of each kind. */
  all?: boolean;
  /** Takes each line of what was found. */
  out: (line: string) => void;
  /** Takes the line that says why the Trace cannot be read. */
  err: (line: string) => void;
}

/** Violations of one kind that are printed; one cause may have thousands. */
const SHOWN = 10;

/**
 * Checks a Trace and prints the first violations of each kind as `line N: rule: message`, as they are found, then how
 * many more there are of it and between which lines, then a summary. A Trace may end while its Session
 * goes on, waits for a person, or was killed: what is open at its end is named in the summary and is no violation.
 * @param target path of a Trace, or the URL of a Session, such as `http://127.0.0.1:8420/api/sessions/<id>`.
 * @returns the exit code: 0 clean, 1 with violations, 2 when the target could not be read to its end.
 */
export async function verify(target: string, options: VerifyOptions): Promise<number> {
  const out = (line: string): void => options.out(printable(line));
  const unreadable = (reason: string): number => {
    options.err(printable(`omnid: cannot read ${target}: ${reason}`));
    return EXIT_UNREACHABLE;
  };
  const report = new Report(out, options.all === true ? Number.POSITIVE_INFINITY : SHOWN);
  try {
    const bytes = /^https?:\/\//i.test(target) ? await download(target, options.token) : createReadStream(target);
    for await (const line of linesOf(bytes)) report.take(line);
  } catch (error) {
    report.tellMore();
    return unreadable(`${reasonOf(error)}${report.lines > 0 ? ` (after line ${report.lines})` : ""}`);
  }
  if (report.lines === 0) return unreadable("it is empty, and a Trace begins with session_meta");
  return report.finish();
}

interface Line {
  bytes: Uint8Array;
  /** False for what stands after the last line feed. */
  isEnded: boolean;
}

/** Violations that say the same but for names and numbers: those that are not printed. */
interface Unshown {
  count: number;
  rule: string;
  /** What the first of them says. */
  message: string;
  from: number;
  to: number;
}

class Report {
  lines = 0;
  readonly #out: (line: string) => void;
  readonly #validator = new StreamValidator({ mode: "trace" });
  readonly #utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  #records = 0;
  #violations = 0;
  #future = 0;
  readonly #shown: number;
  /** How often each kind was there. */
  readonly #kinds = new Map<string, number>();
  readonly #unshown = new Map<string, Unshown>();

  constructor(out: (line: string) => void, shown: number) {
    this.#out = out;
    this.#shown = shown;
  }

  take(line: Line): void {
    this.lines += 1;
    const message = this.#parse(line);
    if (message === undefined) return;
    this.#records += 1;
    this.#validator.push(message, this.lines);
    this.#tell();
  }

  /** Says of those that were not printed how many there are. */
  tellMore(): void {
    for (const { count: more, rule, message, from, to } of this.#unshown.values()) {
      const lines = from === to ? `line ${from}` : `lines ${from} to ${to}`;
      this.#out(`${lines}: ${rule}: and ${more.toLocaleString("en")} more of this kind: ${message}`);
    }
  }

  finish(): number {
    this.tellMore();
    const future = this.#future > 0 ? `, ${count(this.#future, "record")} of a type not known here` : "";
    const open = stillOpen(this.#validator);
    this.#out(`${count(this.#records, "record")}${future}, ${count(this.#violations, "violation")}${open}`);
    return this.#violations === 0 ? 0 : 1;
  }

  #parse({ bytes, isEnded }: Line): OmniMessage | undefined {
    let value: unknown;
    try {
      value = JSON.parse(this.#utf8.decode(bytes));
    } catch (error) {
      if (!isEnded) this.#violation("torn", `the last line is cut off after ${count(bytes.length, "byte")}`);
      else this.#violation("json", bytes.length === 0 ? "the line is empty" : reasonOf(error));
      return undefined;
    }
    const found = classify(value);
    if ("message" in found) return found.message;
    if ("future" in found) this.#future += 1;
    else this.#violation("shape", found.problems.join("; "));
    return undefined;
  }

  #tell(): void {
    // Taken out: of many violations only their number is kept.
    for (const { place, rule, message } of this.#validator.violations.splice(0)) this.#violation(rule, message, place);
  }

  #violation(rule: string, message: string, line = this.lines): void {
    this.#violations += 1;
    const kind = kindOf(rule, message);
    const count = (this.#kinds.get(kind) ?? 0) + 1;
    this.#kinds.set(kind, count);
    if (count <= this.#shown) {
      this.#out(`line ${line}: ${rule}: ${message}`);
      return;
    }
    const unshown = this.#unshown.get(kind) ?? { count: 0, rule, message, from: line, to: line };
    this.#unshown.set(kind, {
      ...unshown,
      count: unshown.count + 1,
      from: Math.min(unshown.from, line),
      to: Math.max(unshown.to, line),
    });
  }
}

/** What is no record is wrong in as many ways as there are texts. */
const kindOf = (rule: string, message: string): string =>
  rule === "json" || rule === "shape" ? rule : `${rule}: ${message.replace(/"(?:[^"\\]|\\.)*"|\d+/g, "…")}`;

function stillOpen({ open }: StreamValidator): string {
  const parts: string[] = [];
  if (open.request) parts.push("a Request");
  if (open.compaction) parts.push("a compaction");
  if (open.undecided > 0) parts.push(`${count(open.undecided, "call")} without decision`);
  if (open.unanswered > 0) parts.push(`${count(open.unanswered, "call")} without output`);
  return parts.length === 0 ? "" : `; open at the end: ${parts.join(", ")}`;
}

/** Splits at LF bytes, before decoding, so that no character is ever cut. */
async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Line, void, void> {
  let pieces: Uint8Array[] = [];
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, start)) {
      pieces.push(chunk.subarray(start, end));
      yield { bytes: Buffer.concat(pieces), isEnded: true };
      pieces = [];
      start = end + 1;
    }
    if (start < chunk.length) pieces.push(chunk.subarray(start));
  }
  if (pieces.length > 0) yield { bytes: Buffer.concat(pieces), isEnded: false };
}

async function download(target: string, token: string | undefined): Promise<AsyncIterable<Uint8Array>> {
  const url = new URL(target);
  url.hash = "";
  if (!url.pathname.endsWith("/trace")) url.pathname = `${url.pathname.replace(/\/+$/, "")}/trace`;
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  // A redirect would carry the question, and perhaps the token, to whoever it names.
  const response = await fetch(url, { headers, redirect: "error" });
  if (!response.ok) throw new Error(`${url.href} answers ${response.status}${await codeOf(response)}`);
  if (response.body === null) throw new Error(`${url.href} answers ${response.status} without a body`);
  return response.body;
}

async function codeOf(response: Response): Promise<string> {
  const text = await response.text();
  try {
    const { error } = JSON.parse(text) as { error?: { code?: unknown; message?: unknown } };
    return error === undefined ? "" : ` ${String(error.code)}: ${String(error.message)}`;
  } catch {
    return ""; // Not one of our answers; the status says what there is to say.
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? "" : "s"}`;
