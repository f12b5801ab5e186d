// A Session with a long past: contexts of about a megabyte, one file each, as compactions leave them.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  assistantText,
  emptyTokenCounts,
  requestBegin,
  requestEnd,
  tokenUsage,
  userText,
} from "../../src/protocol/builders.js";
import { toLine } from "../../src/protocol/message.js";

const AT = "2026-01-01T00:00:00.000Z";
const FILE_BYTES = 1_000_000;
/** Answers of these lengths take turns. */
const LENGTHS = [300, 1200, 6000];

/** Fills the Trace of a Session that has only its `session_meta`, while no server runs. @returns how many records it has then. */
export function fillTrace(folder: string, bytes: number): number {
  const meta = readFileSync(join(folder, "trace-000001.jsonl"), "utf8");
  let records = 0;
  let turn = 0;
  for (let file = 1, written = 0; written < bytes; file += 1) {
    const lines = [meta.trimEnd()];
    let size = meta.length;
    while (size < Math.min(FILE_BYTES, bytes - written)) {
      for (const line of turnOf(turn++)) {
        lines.push(line);
        size += line.length + 1;
      }
    }
    writeFileSync(join(folder, `trace-${String(file).padStart(6, "0")}.jsonl`), `${lines.join("\n")}\n`);
    written += size;
    records += lines.length;
  }
  return records;
}

function turnOf(turn: number): string[] {
  const counts = emptyTokenCounts();
  return [
    userText(AT, `question ${turn}`),
    requestBegin(AT),
    assistantText(AT, "words of an answer ".repeat((LENGTHS[turn % LENGTHS.length] as number) / 19)),
    tokenUsage(AT, counts, counts),
    requestEnd(AT, { status: "completed" }),
  ].map(toLine);
}
