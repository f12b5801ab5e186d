// A text that is too long to be read as Markdown at once, in sections that are not: each is cut off at an empty line
// outside of a piece of code, where there is one. What is referred to in another section is not found.

const SECTION_CHARACTERS = 20_000;
/** A piece of code that is longer is cut in itself. */
const MOST_CHARACTERS = 150_000;

/** The sections of a text; joined they are the text. */
export function sectionsOf(text: string): string[] {
  const sections: string[] = [];
  let start = 0;
  let fence = "";
  for (let at = 0; at < text.length; ) {
    const end = endOfLine(text, at);
    const line = text.slice(at, Math.min(end, at + 200));
    fence = fenceAfter(fence, line);
    at = end;
    const length = at - start;
    const isPause = fence === "" && line.trim() === "";
    if ((length >= SECTION_CHARACTERS && isPause) || length >= MOST_CHARACTERS) {
      sections.push(text.slice(start, at));
      start = at;
    }
  }
  if (start < text.length) sections.push(text.slice(start));
  return sections;
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end < 0 ? text.length : end + 1;
}

/** The fence that is open behind a line; empty where none is. */
function fenceAfter(open: string, line: string): string {
  const mark = /^ {0,3}(`{3,}|~{3,})(.*)/.exec(line);
  if (mark === null) return open;
  const [, fence = "", rest = ""] = mark;
  if (open === "") return fence.startsWith("`") && rest.includes("`") ? "" : fence;
  return fence.startsWith(open) && rest.trim() === "" ? "" : open;
}
