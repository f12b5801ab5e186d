// read_image: an image of the Workspace for the model to see. What it is, its first bytes say, not its name.

import { z } from "zod";
import { explain } from "./file-errors.js";
import { defineTool, type Tool, ToolFailure } from "./tool.js";
import type { Workspace } from "./workspace.js";

// The strictest provider takes 5 MiB of base64, which is 3.75 MiB of image.
export const MAX_IMAGE_BYTES = 3_932_160;

const parameters = z.strictObject({
  source: z
    .string()
    .min(1)
    .describe("The image file (PNG, JPEG, GIF, WebP, BMP), relative to the Workspace or absolute."),
});

export function readImageTool(workspace: Workspace): Tool<z.output<typeof parameters>> {
  return defineTool({
    name: "read_image",
    description: "Shows an image file to you. It takes a path; URLs are not fetched.",
    parameters,
    mayWrite: false,
    async *run({ source }) {
      if (/^(?:[a-z][a-z0-9+.-]*:\/\/|data:)/i.test(source)) {
        throw new ToolFailure("read_image takes the path of a file; URLs are not fetched.");
      }
      const { handle, stats, shown } = await workspace.openFile(source);
      try {
        if (stats.size > MAX_IMAGE_BYTES) {
          throw new ToolFailure(`${shown} is ${stats.size} bytes, limit ${MAX_IMAGE_BYTES}. Make it smaller first.`);
        }
        const bytes = await handle.readFile();
        const mimeType = imageType(bytes);
        if (mimeType === undefined) throw new ToolFailure(`${shown} is not a PNG, JPEG, GIF, WebP or BMP image.`);
        yield `${shown} (${mimeType}, ${bytes.length} bytes)`;
        return { images: [`data:${mimeType};base64,${bytes.toString("base64")}`] };
      } catch (error) {
        throw explain(error, shown);
      } finally {
        await handle.close();
      }
    },
  });
}

/** @returns the MIME type that the first bytes tell, if it is one that models take. */
export function imageType(bytes: Buffer): string | undefined {
  const begins = (text: string, at = 0) => bytes.toString("latin1", at, at + text.length) === text;
  if (begins("\x89PNG\r\n\x1a\n")) return "image/png";
  if (begins("\xff\xd8\xff")) return "image/jpeg";
  if (begins("GIF87a") || begins("GIF89a")) return "image/gif";
  if (begins("RIFF") && begins("WEBP", 8)) return "image/webp";
  if (begins("BM") && bytes.length >= 26) return "image/bmp";
  return undefined;
}
