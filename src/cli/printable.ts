// What others wrote (models, tools, providers), as it may go to a terminal: none of it may steer it.

export const printable = (line: string): string =>
  line.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (c) => `\\u{${c.codePointAt(0)!.toString(16)}}`);
