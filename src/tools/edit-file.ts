// edit_file: one exact text for another. No pattern is involved on either side.

import { z } from "zod";
import { replaceFile } from "./atomic-write.js";
import { explain } from "./file-errors.js";
import { inTurn } from "./file-lock.js";
import { finder, lineNumbers, similarLine } from "./text-search.js";
import { defineTool, type Tool, ToolFailure } from "./tool.js";
import type { Workspace } from "./workspace.js";

const MAX_FILE_BYTES = 16_777_216;
/** More would hold the process for seconds. */
const MAX_OCCURRENCES = 100_000;
const MAX_LINES_NAMED = 10;

const parameters = z.strictObject({
  file_path: z.string().min(1).describe("The file, relative to the Workspace or absolute."),
  old_string: z
    .string()
    .min(1)
    .describe("The text to replace, exactly as it stands in the file, white space included."),
  new_string: z.string().describe("The text to put there."),
  replace_all: z.boolean().optional().describe("Replace every occurrence. Left out: there must be exactly one."),
});

type EditArgs = z.output<typeof parameters>;

export function editFileTool(workspace: Workspace): Tool<EditArgs> {
  return defineTool({
    name: "edit_file",
    description: "Replaces a text in a file. The text must occur exactly once, unless replace_all is true.",
    parameters,
    mayWrite: true,
    async *run(args, { signal }) {
      if (args.old_string === args.new_string) throw new ToolFailure("old_string and new_string are the same.");
      const place = await workspace.place(args.file_path);
      try {
        const edited = await inTurn(place.key, async () => {
          const edit = editText(await readText(workspace, args.file_path), args, place.shown);
          if (signal.aborted) return undefined;
          await replaceFile(place, edit.text);
          return edit;
        });
        if (edited === undefined) return { stop: "aborted" };
        const { count, lines } = edited;
        yield `edited ${place.shown}: ${count === 1 ? `1 replacement at line ${lines}` : `${count} replacements, at lines ${lines}`}`;
        return {};
      } finally {
        await place.close();
      }
    },
  });
}

async function readText(workspace: Workspace, path: string): Promise<string> {
  const { handle, stats, shown } = await workspace.openFile(path);
  try {
    if (stats.size > MAX_FILE_BYTES) {
      throw new ToolFailure(`${shown} is ${stats.size} bytes, limit ${MAX_FILE_BYTES}. Edit it with exec_command.`);
    }
    // Strict, and the byte order mark is kept: what is not replaced goes back byte for byte.
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await handle.readFile());
  } catch (error) {
    if (error instanceof TypeError) throw new ToolFailure(`${shown} is not UTF-8 text. Edit it with exec_command.`);
    throw explain(error, shown);
  } finally {
    await handle.close();
  }
}

function editText(text: string, args: EditArgs, shown: string): { text: string; count: number; lines: string } {
  const { from, to } = inTheFilesLineEnds(text, args.old_string, args.new_string);
  const find = finder(text, from);
  const places = occurrences(find, from.length);
  if (places.length === 0) throw new ToolFailure(`old_string does not occur in ${shown}.${hint(text, from)}`);
  const lines = namedLines(text, places);
  // Occurrences that overlap are as ambiguous as two apart.
  const several = places.length > 1 || find((places[0] ?? 0) + 1) >= 0;
  if (several && args.replace_all !== true) {
    throw new ToolFailure(
      `old_string occurs more than once in ${shown} (from lines ${lines}). Add text around it until it is unique, or set replace_all.`,
    );
  }
  const length = text.length + places.length * (to.length - from.length);
  if (length > MAX_FILE_BYTES) {
    throw new ToolFailure(`the edited file would have ${length} characters, limit ${MAX_FILE_BYTES}`);
  }
  let edited = "";
  let done = 0;
  for (const place of places) {
    edited += text.slice(done, place) + to;
    done = place + from.length;
  }
  return { text: edited + text.slice(done), count: places.length, lines };
}

/** Models write `\n`. In a file that ends all its lines with CRLF, or where only so it is found, they mean that. */
function inTheFilesLineEnds(text: string, from: string, to: string): { from: string; to: string } {
  const crlf = (part: string) => part.replace(/\r?\n/g, "\r\n");
  if (!text.includes("\r\n")) return { from, to };
  const isPure = !/(?:^|[^\r])\n/.test(text);
  return isPure || finder(text, from)(0) < 0 ? { from: crlf(from), to: crlf(to) } : { from, to };
}

function occurrences(find: (from: number) => number, length: number): number[] {
  const found: number[] = [];
  for (let at = find(0); at >= 0; at = find(at + length)) {
    if (found.length === MAX_OCCURRENCES) {
      throw new ToolFailure(`old_string occurs more than ${MAX_OCCURRENCES} times. Edit the file with exec_command.`);
    }
    found.push(at);
  }
  return found;
}

function namedLines(text: string, places: readonly number[]): string {
  const named = lineNumbers(text, places.slice(0, MAX_LINES_NAMED)).join(", ");
  return named + (places.length > MAX_LINES_NAMED ? ", ..." : "");
}

/** Where the first line of the text stands with other white space, which is the usual mistake. */
function hint(text: string, part: string): string {
  if (!/\S/.test(part)) return "";
  const line = similarLine(text, part);
  return line === undefined
    ? " Read the file again."
    : ` Line ${line} is like its first line; compare white space and what follows.`;
}
