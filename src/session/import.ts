// A Session made of an uploaded Trace. Every record is kept as it came, text and place, but for what names the Session,
// its folder and its Workspace in each `session_meta`, and for an `ordinal` that it came with. What is in memory of it is
// one chunk and a megabyte, and of all imports together one long line.
//
// What a restart would leave out of a damaged file is not left out silently here: the file is refused with the lines, and
// whoever sent it may ask to go on without them. Records of a type that is not known, or whose payload is damaged, are
// records: they keep their place in the history, as they would in a file of ours.

import { isUtf8 } from "node:buffer";
import { join } from "node:path";
import { isSessionMeta } from "../protocol/guards.js";
import { nestsDeeper } from "../protocol/json-depth.js";
import { unbroken } from "../protocol/message.js";
import type { SessionMetaPayload } from "../protocol/payloads.js";
import { classify } from "../protocol/validate.js";
import { ok, refuse } from "../result.js";
import { hasForeignPlace, withoutPlace } from "../trace/foreign-place.js";
import { type ParsedRecord, parseRecord } from "../trace/jsonl-reader.js";
import { rewritePayload } from "../trace/meta-rewrite.js";
import { dropWorkspace, type Made, makeWorkspace, sessionIdAt } from "./create.js";
import { isStorageError } from "./is-storage-error.js";
import type { SessionProcess } from "./process.js";
import { recordFile, recordFromMeta, type SessionRecord } from "./session-record.js";
import type { ImportSource, LineProblem, Owner, Taken } from "./types.js";
import { type UploadedLine, uploadedLines } from "./upload-lines.js";

/** Faults that are told at once; the file is not read further. */
const MAX_PROBLEMS = 20;
/** Deeper than any record of ours: a provider's event of the greatest depth, and what stands around it. */
const MAX_RECORD_DEPTH = 1_100;
/** Each begins a file. */
const MAX_CONTEXTS = 10_000;
/** What one context may weigh: it is held in memory as long as its Session is. */
const MAX_CONTEXT_WEIGHT = 512 * 1024 * 1024;
/** What a value costs in memory beyond its text, about, in bytes. */
const VALUE_WEIGHT = 40;

/** The file is no Trace: thrown through the store, which then leaves nothing. */
class BadFile extends Error {
  readonly problems: LineProblem[];

  constructor(problems: LineProblem[]) {
    super("the file cannot be imported");
    this.problems = problems;
  }
}

/** @throws what the chunks throw; nothing is left then. */
export async function importSession(shared: SessionProcess, source: ImportSource, owner: Owner): Promise<Taken<Made>> {
  const now = shared.clock.now();
  const sessionId = sessionIdAt(now, shared.newId());
  const own = { workspace: join(shared.workspacesFolder, sessionId), ownsWorkspace: true };
  const upload = new Upload(source, `${own.workspace}.line`, {
    session_id: sessionId,
    agent_state: shared.traces.folder(sessionId),
    workspace: own.workspace,
  });
  const at = new Date(now).toISOString();
  const record = (): SessionRecord => {
    const context = { sessionId, createdAt: at, lastActiveAt: at, workspacesFolder: shared.workspacesFolder };
    return { ...recordFromMeta(upload.meta, context), ...own, owner };
  };
  const records = async function* () {
    yield* upload.batches();
    // Not before the whole file has come: whoever leaves in the middle leaves no folder.
    await makeWorkspace(own.workspace);
  };
  try {
    const beside = () => recordFile(record());
    const trace = await shared.traces.create(sessionId, records(), beside, () => dropWorkspace(shared, own));
    return ok({ record: record(), trace });
  } catch (error) {
    if (error instanceof BadFile) {
      const [first] = error.problems as [LineProblem];
      const message = `this is no Trace that can be imported: ${first.path}: ${first.message}`;
      return { ...refuse("invalid_request", message), problems: error.problems };
    }
    if (!isStorageError(error)) throw error;
    shared.log.error({ err: error }, "a Trace could not be imported");
    return refuse("storage_failed", "the Session could not be recorded");
  }
}

class Upload {
  readonly #source: ImportSource;
  readonly #scratch: string;
  readonly #own: Readonly<Record<string, string>>;
  readonly #problems: LineProblem[] = [];
  /** The newest `session_meta`: what the Session goes on with. */
  #meta: SessionMetaPayload | undefined;
  #contexts = 0;
  /** Of the context at hand. */
  #weight = 0;

  constructor(source: ImportSource, scratch: string, own: Readonly<Record<string, string>>) {
    this.#source = source;
    this.#scratch = scratch;
    this.#own = own;
  }

  /** Only once the batches have ended. */
  get meta(): SessionMetaPayload {
    if (this.#meta === undefined) throw new Error("no batch was taken");
    return this.#meta;
  }

  /** The records as they are stored. */
  async *batches(): AsyncGenerator<string[], void, void> {
    const { chunks, maxLineBytes } = this.#source;
    for await (const lines of uploadedLines(chunks, { maxLineBytes, scratch: this.#scratch })) {
      const batch = lines.flatMap((line) => this.#take(line) ?? []);
      if (this.#problems.length >= MAX_PROBLEMS || this.#weight < 0) break;
      if (batch.length > 0 && this.#problems.length === 0) yield batch;
    }
    if (this.#problems.length > 0) throw new BadFile(this.#problems);
    if (this.#meta === undefined) throw new BadFile([{ path: "line 1", message: "the file holds no record" }]);
  }

  #take(line: UploadedLine): string | undefined {
    const { number } = line;
    const isLenient = this.#source.damaged === "skip";
    if (line.bytes !== undefined) this.#weight += weightOf(line.bytes);
    if (this.#weight > MAX_CONTEXT_WEIGHT) {
      this.#weight = Number.NEGATIVE_INFINITY; // Once is enough.
      this.#fault(number, "the records since the last session_meta are more than a Session can hold in memory");
    }
    if (this.#weight < 0) return undefined;
    const found = line.bytes === undefined ? undefined : recordIn(line.bytes, number === 1, isLenient);
    if (found === "blank") return undefined;
    if (found === undefined || typeof found === "string") {
      const reason = found ?? `is longer than ${this.#source.maxLineBytes} bytes`;
      if (!isLenient) this.#fault(number, line.isEnded ? reason : `${reason}, and has no line feed: is it cut off?`);
      return undefined;
    }
    const json = unbroken(hasForeignPlace(found) ? withoutPlace(found.json) : found.json);
    if (found.message.type === "session_meta") return this.#takeMeta(number, { ...found, json });
    if (this.#meta === undefined) this.#fault(number, "a Trace begins with a session_meta");
    return json;
  }

  #takeMeta(number: number, { json, message }: ParsedRecord): string {
    const judged = classify(message);
    if ("message" in judged && isSessionMeta(judged.message)) this.#meta = judged.message.payload;
    else if (this.#meta === undefined) {
      const problems = "problems" in judged ? judged.problems.join("; ") : "";
      this.#fault(number, `a Trace begins with a session_meta; ${problems}`);
    }
    this.#weight = 0;
    this.#contexts += 1;
    if (this.#contexts > MAX_CONTEXTS) this.#fault(number, `the file has more than ${MAX_CONTEXTS} contexts`);
    return rewritePayload(json, this.#own);
  }

  #fault(number: number, message: string): void {
    if (this.#problems.length < MAX_PROBLEMS) this.#problems.push({ path: `line ${number}`, message });
  }
}

/** About the memory that a line takes once it is parsed: many small values take more than their text. */
function weightOf(line: Buffer): number {
  let values = 0;
  for (const byte of line) if (byte === COMMA || byte === BRACKET || byte === BRACE) values += 1;
  return line.length + VALUE_WEIGHT * values;
}

const COMMA = 0x2c;
const BRACKET = 0x5b;
const BRACE = 0x7b;

/** @returns the record in a line, or what is wrong with it; `blank` for a line that says nothing. */
function recordIn(bytes: Buffer, isFirst: boolean, isLenient: boolean): ParsedRecord | string {
  // A byte order mark is no part of JSON, and some editors put one in front of a file.
  const text = isFirst && bytes.subarray(0, 3).equals(BOM) ? bytes.subarray(3) : bytes;
  if (text.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d)) return "blank";
  if (!isLenient && !isUtf8(text)) return "is not UTF-8";
  if (!isLenient && text.includes(0)) return "holds NUL bytes";
  const record = parseRecord(text);
  // Nothing of ours nests so deeply, and a Request could not be written with it.
  if (record !== undefined && nestsDeeper(record.json, MAX_RECORD_DEPTH))
    return `nests deeper than ${MAX_RECORD_DEPTH}`;
  return record ?? "is no record: a JSON object with a known type and an object as payload";
}

const BOM = Buffer.from([0xef, 0xbb, 0xbf]);
