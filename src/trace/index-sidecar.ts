// The index of a long Trace, kept beside it so that opening costs the index and not the Trace. It is a cache: the files
// decide. It is written after the bytes that it tells of were forced to the disk, so that a power failure cannot leave
// an index of records which are gone; whatever is missing, older, altered or does not fit is scanned again.

import { createHash } from "node:crypto";
import { join } from "node:path";
import { z } from "zod";
import { errnoOf } from "./storage-error.js";
import { type FileStat, type FsyncPolicy, replaceFile, type TraceFile, type TraceFs } from "./trace-fs.js";
import { countOf, type Damage, emptyFileIndex, extendIndex, type FileIndex } from "./trace-index.js";
import type { TraceLog } from "./trace-store.js";

const SIDECAR = "trace-index.json";
/** A Trace below this size is scanned faster than its sidecar would be kept. */
const MIN_BYTES = 256 * 1024;
/** How much before the end of the indexed part is compared when a file has grown since. */
const PRINT_BYTES = 512;

const TRACE_FILE = /^trace-(\d{6,})\.jsonl$/;

const natural = z.number().int().nonnegative();
const entrySchema = z.object({
  name: z.string(),
  records: natural,
  bytes: natural,
  isOpen: z.boolean(),
  newestMeta: z.number().int().min(-1),
  marks: z.array(natural),
  /** The file as it was: time of its last change, and a hash of the last indexed bytes. */
  mtimeMs: z.number(),
  print: z.string(),
});
type Entry = z.infer<typeof entrySchema>;
const sidecarSchema = z.object({ version: z.literal(1), check: z.string(), files: z.array(entrySchema) });

export const traceFileName = (number: number): string => `trace-${String(number).padStart(6, "0")}.jsonl`;
export const traceFileNumber = (name: string): number => Number(TRACE_FILE.exec(name)?.[1] ?? 0);

/** @returns the names of the Trace files in a Session's folder, oldest first. */
export async function listTraceFiles(fs: TraceFs, folder: string): Promise<string[]> {
  const names = (await fs.list(folder)).filter((name) => TRACE_FILE.test(name));
  return names.sort((a, b) => traceFileNumber(a) - traceFileNumber(b));
}

/**
 * The index of every Trace file in a folder, oldest first: from the sidecar where it fits, else by a scan.
 * @returns also how many bytes had to be scanned.
 */
export async function loadIndex(
  fs: TraceFs,
  folder: string,
  log: TraceLog,
  options: { trustSidecar: boolean },
): Promise<{ files: FileIndex[]; scannedBytes: number }> {
  const names = await listTraceFiles(fs, folder);
  const entries = options.trustSidecar ? await readSidecar(fs, folder, log) : new Map<string, Entry>();
  const files: FileIndex[] = [];
  let scannedBytes = 0;
  for (const name of names) {
    const path = join(folder, name);
    const entry = entries.get(name);
    const isNewest = name === names.at(-1);
    if (entry !== undefined && isUnchanged(entry, await fs.stat(path))) {
      files.push(indexOf(entry));
      continue;
    }
    const file = await fs.openToRead(path);
    try {
      const { size } = await file.stat();
      const hasGrown = entry !== undefined && isNewest && (await isContinued(entry, file, size));
      const index = hasGrown ? indexOf(entry) : emptyFileIndex(name);
      scannedBytes += size - index.bytes;
      warnOf(await extendIndex(index, file, size), path, log);
      files.push(index);
    } finally {
      await file.close();
    }
  }
  return { files, scannedBytes };
}

/** Keeps the index of a Trace that is long enough for it. Never throws: a sidecar is only worth its speed. */
export async function saveIndex(
  fs: TraceFs,
  folder: string,
  files: readonly FileIndex[],
  fsync: FsyncPolicy,
  log: TraceLog,
): Promise<void> {
  const snapshot = files.map((file) => ({ ...file, marks: [...file.marks] }));
  const bytes = snapshot.reduce((sum, file) => sum + file.bytes, 0);
  if (bytes < MIN_BYTES || countOf(snapshot) === 0) return;
  try {
    const entries: Entry[] = [];
    for (const index of snapshot) entries.push(await describe(fs, join(folder, index.name), index, fsync));
    const text = JSON.stringify({ version: 1, check: checkOf(entries), files: entries });
    await replaceFile(fs, join(folder, SIDECAR), text, fsync === "off" ? "off" : "interval");
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") log.warn({ err: error, folder }, "trace index not kept; the next opening scans");
  }
}

async function readSidecar(fs: TraceFs, folder: string, log: TraceLog): Promise<Map<string, Entry>> {
  const path = join(folder, SIDECAR);
  try {
    const value = JSON.parse((await fs.readFile(path)).toString());
    const parsed = sidecarSchema.safeParse(value);
    // Of what stands there: another version may have kept more in it.
    if (parsed.success && parsed.data.check === checkOf(value.files)) {
      return new Map(parsed.data.files.map((entry) => [entry.name, entry]));
    }
    log.warn({ path }, "trace index is damaged; scanning the trace");
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") log.warn({ err: error, path }, "trace index is unreadable; scanning the trace");
  }
  return new Map();
}

async function describe(fs: TraceFs, path: string, index: FileIndex, fsync: FsyncPolicy): Promise<Entry> {
  const file = fsync === "off" ? await fs.openToRead(path) : await fs.openToAppend(path);
  try {
    if (fsync !== "off") await file.sync();
    const { mtimeMs } = await file.stat();
    return { ...index, mtimeMs, print: await printOf(file, index.bytes) };
  } finally {
    await file.close();
  }
}

const checkOf = (files: readonly Entry[]): string => hashOf(JSON.stringify(files));
const hashOf = (data: string | Uint8Array): string => createHash("sha256").update(data).digest("base64url");

/** A hash of the last bytes before `end`. */
async function printOf(file: TraceFile, end: number): Promise<string> {
  const bytes = Buffer.alloc(Math.min(PRINT_BYTES, end));
  await file.read(bytes, end - bytes.length);
  return hashOf(bytes);
}

/** A file that had more than what was indexed, for whatever reason, is looked at. */
function isUnchanged(entry: Entry, stat: FileStat): boolean {
  return entry.bytes === stat.size && entry.mtimeMs === stat.mtimeMs;
}

/** True when a file only got longer: more records since, or a torn end. */
async function isContinued(entry: Entry, file: TraceFile, size: number): Promise<boolean> {
  return !entry.isOpen && size > entry.bytes && entry.print === (await printOf(file, entry.bytes));
}

function indexOf({ name, records, bytes, isOpen, newestMeta, marks }: Entry): FileIndex {
  return { name, records, bytes, isOpen, newestMeta, marks };
}

function warnOf(damage: Damage, path: string, log: TraceLog): void {
  if (damage.skipped > 0) {
    log.warn({ path, lines: damage.skipped, firstAt: damage.firstAt }, "skipped lines of a trace that hold no record");
  }
  if (damage.tornBytes > 0) log.warn({ path, bytes: damage.tornBytes }, "dropped a torn last line of a trace");
}
