// Files that go with the next prompt, from a picker, the clipboard or a drop.

import { attempt } from "./connect.js";
import { setAttachments } from "./drafts.js";
import { type Attachment, attachments } from "./state.js";
import { newKey } from "./tab-locks.js";

/** What a server takes in one body unless it is told otherwise; base64 makes a third more of it. */
const MAX_BYTES = 15 * 1024 * 1024;
/** Kinds of picture that providers take; others go as files. */
const PICTURES = /^image\/(?:png|jpeg|gif|webp)$/;

export const attach = (files: Iterable<File>): Promise<boolean> =>
  attempt(async () => {
    for (const file of files) {
      const total = attachments.value.reduce((sum, { bytes }) => sum + bytes, file.size);
      if (file.size === 0) throw new Error(`${file.name} is empty.`);
      if (total > MAX_BYTES) throw new Error(`${file.name} is too large: 15 MB may go with a prompt.`);
      const added = await read(file);
      setAttachments([...attachments.value, added]);
    }
  });

export const detach = (key: string): void => {
  setAttachments(attachments.value.filter((each) => each.key !== key));
};

async function read(file: File): Promise<Attachment> {
  const type = PICTURES.test(file.type) ? file.type : plainType(file.type);
  const dataUrl = `data:${type};base64,${await base64Of(file)}`;
  const name = file.name.replace(/[/\\]/g, "_") || "file";
  return { key: newKey(), name, type, bytes: file.size, dataUrl };
}

/** A picture that no provider takes is a file like any other. */
function plainType(type: string): string {
  const isNamed = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/.test(type);
  return !isNamed || type.startsWith("image/") ? "application/octet-stream" : type;
}

function base64Of(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).split(",", 2)[1] ?? "");
    reader.onerror = () => reject(new Error(`${file.name} could not be read.`));
    reader.readAsDataURL(file);
  });
}
