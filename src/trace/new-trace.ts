// The first files of a new Trace, written into a folder that nobody sees yet: there is nothing to heal here, whoever
// made the folder removes it when this throws.

import { join } from "node:path";
import { encodeLines } from "./encode-lines.js";
import { traceFileName } from "./index-sidecar.js";
import { mustBeWhole } from "./jsonl-writer.js";
import { onDisk } from "./storage-error.js";
import type { FsyncPolicy, TraceFile, TraceFs } from "./trace-fs.js";
import { addGroup, emptyFileIndex, type FileIndex, isMetaLine } from "./trace-index.js";

/**
 * Writes all records, a new file from each `session_meta` on.
 * @returns the index of what was written, at least one file.
 */
export async function writeNewTrace(
  fs: TraceFs,
  folder: string,
  records: Iterable<readonly string[]> | AsyncIterable<readonly string[]>,
  fsync: FsyncPolicy,
): Promise<FileIndex[]> {
  const files: FileIndex[] = [];
  let file: TraceFile | undefined;
  const finish = async () => {
    const done = file;
    file = undefined;
    await onDisk("write_failed", "a new trace could not be written", async () => {
      if (fsync !== "off") await done?.sync();
      await done?.close();
    });
  };
  try {
    for await (const batch of records) {
      for (const lines of splitAtMeta(batch)) {
        if (files.length === 0 || isMetaLine(lines[0]!)) {
          await finish();
          files.push(emptyFileIndex(traceFileName(files.length + 1)));
        }
        const index = files.at(-1)!;
        await onDisk("write_failed", "a new trace could not be written", async () => {
          file ??= await fs.create(join(folder, index.name));
          const { data, sizes, release } = encodeLines(lines, "");
          mustBeWhole(await file.write(data).finally(release), data);
          addGroup(index, index.bytes, lines, sizes);
        });
      }
    }
    await finish();
  } finally {
    await (file as TraceFile | undefined)?.close().catch(() => {}); // Only after a failure, which is the one to report.
  }
  if (files.length === 0) throw new Error("a trace has at least one record");
  return files;
}

/** Cuts a batch so that each `session_meta` is the first of its part. */
function splitAtMeta(lines: readonly string[]): string[][] {
  const parts: string[][] = [];
  for (const line of lines) {
    if (parts.length === 0 || isMetaLine(line)) parts.push([]);
    parts.at(-1)!.push(line);
  }
  return parts;
}
