// write_file: a whole file at once.

import { z } from "zod";
import { replaceFile } from "./atomic-write.js";
import { inTurn } from "./file-lock.js";
import { defineTool, type Tool } from "./tool.js";
import type { Workspace } from "./workspace.js";

const parameters = z.strictObject({
  file_path: z.string().min(1).describe("The file, relative to the Workspace or absolute. Missing folders are made."),
  content: z.string().describe("The whole content."),
});

export function writeFileTool(workspace: Workspace): Tool<z.output<typeof parameters>> {
  return defineTool({
    name: "write_file",
    description: "Writes a file, in place of the one that is there. To change a part of a file use edit_file.",
    parameters,
    mayWrite: true,
    async *run({ file_path, content }, { signal }) {
      const place = await workspace.place(file_path, { makeFolders: true });
      try {
        const done = await inTurn(place.key, async () => (signal.aborted ? undefined : replaceFile(place, content)));
        if (done === undefined) return { stop: "aborted" };
        yield `${done} ${place.shown} (${Buffer.byteLength(content)} bytes)`;
        return {};
      } finally {
        await place.close();
      }
    },
  });
}
