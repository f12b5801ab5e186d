// What others wrote (models, tools, providers, servers), as it may go to a terminal: none of it may steer it.

export const printable = (line: string): string =>
  line.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (c) => `\\u{${c.codePointAt(0)!.toString(16)}}`);

/** Line feeds and tabs stay. */
export const printableText = (text: string): string => text.replaceAll("\r\n", "\n").replace(/[^\n\t]+/g, printable);

/**
 * JSON that means the same and steers nothing. JSON itself escapes what is below a space; what else a terminal obeys or
 * does not show stands in strings alone.
 */
export const printableJson = (json: string): string =>
  json.replace(/[\x7f-\x9f\p{Cf}\u2028\u2029]/gu, (character) =>
    // An escape is of UTF-16: a character beyond it is two.
    [...Array(character.length).keys()]
      .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`)
      .join(""),
  );
