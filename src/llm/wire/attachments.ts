// Images and files as a request carries them: a data URL taken apart, and the text of what is text.

export interface Media {
  mimeType: string;
  /** Base64. */
  data: string;
}

/** @returns undefined for anything that is not a data URL. */
export function readDataUrl(url: string): Media | undefined {
  const head = /^data:([^;,]*)((?:;[^;,]*)*),/i.exec(url);
  if (head === null) return undefined;
  const body = url.slice(head[0].length);
  const mimeType = (head[1] ?? "").trim().toLowerCase() || "text/plain";
  if (/;base64$/i.test(head[2] ?? "")) return { mimeType, data: body };
  try {
    return { mimeType, data: Buffer.from(decodeURIComponent(body), "utf8").toString("base64") };
  } catch {
    return undefined; // a stray % sign: not a data URL
  }
}

/** @returns undefined for bytes that are not UTF-8 text. */
export function utf8Text(base64: string): string | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(base64, "base64"));
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined; // not UTF-8: a binary file
  }
}
