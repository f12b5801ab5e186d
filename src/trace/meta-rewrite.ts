// Gives the payload of a record other values for some of its members, or leaves a member of the record out, and keeps
// every other byte as it is: numbers that a double does not hold, the order of keys and spaces survive, which a parse and
// a stringify would not promise.

/** What ends a number or a word. */
const PLAIN = /[^\s,\]}]+/y;
const SPACE = /\s*/y;

/**
 * @param json a JSON object on one line that has been parsed: what is not well-formed is a bug here
 * @param members new values by name; a member that the payload does not have is not added
 */
export function rewritePayload(json: string, members: Readonly<Record<string, unknown>>): string {
  const scanner = new Scanner(json);
  const edits: { from: number; to: number; text: string }[] = [];
  scanner.object((key) => {
    if (key !== "payload" || !scanner.isAt("{")) return scanner.skipValue();
    scanner.object((name) => {
      const from = scanner.place;
      scanner.skipValue();
      // All of them where a name comes twice: the last one counts, and none should tell of another Session.
      if (Object.hasOwn(members, name)) edits.push({ from, to: scanner.place, text: JSON.stringify(members[name]) });
    });
  });
  let result = "";
  let done = 0;
  for (const { from, to, text } of edits) {
    result += json.slice(done, from) + text;
    done = to;
  }
  return result + json.slice(done);
}

export interface Span {
  readonly from: number;
  readonly to: number;
}

/** @returns a JSON object without the members of this name; those inside its values stay. */
export const withoutMember = (json: string, name: string): string =>
  spansWithout(json, name)
    .map(({ from, to }) => json.slice(from, to))
    .join("");

/**
 * @param json a JSON object that has been parsed
 * @returns what is left of it without the members of this name, and without the commas that went with them
 */
export function spansWithout(json: string, name: string): Span[] {
  const scanner = new Scanner(json);
  const spans: Span[] = [];
  /** Where the text begins that is in no span yet. */
  let from = 0;
  /** Where a run of members to leave out begins, with the comma before it where nothing follows. */
  let cut: { key: number; comma: number } | undefined;
  let lastEnd: number | undefined;
  let cutEnd = 0;
  scanner.object((key, at) => {
    if (key === name) cut ??= { key: at, comma: lastEnd ?? at };
    else if (cut !== undefined) {
      spans.push({ from, to: cut.key });
      from = at;
      cut = undefined;
    }
    scanner.skipValue();
    if (key !== name) lastEnd = scanner.place;
    else cutEnd = scanner.place;
  });
  if (cut !== undefined) {
    spans.push({ from, to: cut.comma });
    from = cutEnd;
  }
  return [...spans, { from, to: json.length }];
}

/** Steps over well-formed JSON. */
class Scanner {
  place = 0;
  readonly #json: string;

  constructor(json: string) {
    this.#json = json;
    this.#take(SPACE);
  }

  isAt(character: string): boolean {
    return this.#json[this.place] === character;
  }

  /** Steps over an object; `onMember` is called at each value, with where its name begins, and has to step over it. */
  object(onMember: (name: string, at: number) => void): void {
    this.#list("}", () => {
      const at = this.place;
      const name = JSON.parse(this.#string()) as string;
      this.#take(SPACE);
      this.place += 1; // the colon
      this.#take(SPACE);
      onMember(name, at);
    });
  }

  skipValue(): void {
    if (this.isAt('"')) this.#string();
    else if (this.isAt("{") || this.isAt("[")) this.#skipNested();
    else this.#take(PLAIN);
  }

  /** By counting: a value may be nested deeper than a stack. */
  #skipNested(): void {
    let depth = 0;
    do {
      const character = this.#json[this.place];
      if (character === '"') {
        this.#string();
        continue;
      }
      if (character === "{" || character === "[") depth += 1;
      else if (character === "}" || character === "]") depth -= 1;
      else if (character === undefined) throw new Error("not well-formed JSON");
      this.place += 1;
    } while (depth > 0);
  }

  /** Not by an expression: those keep a note of each character, and a prompt may have millions. */
  #string(): string {
    const from = this.place;
    do {
      this.place = this.#json.indexOf('"', this.place + 1);
      if (this.place < 0) throw new Error("not well-formed JSON");
    } while (this.#isEscaped());
    this.place += 1;
    return this.#json.slice(from, this.place);
  }

  #isEscaped(): boolean {
    let backslashes = 0;
    while (this.#json[this.place - 1 - backslashes] === "\\") backslashes += 1;
    return backslashes % 2 === 1;
  }

  #list(close: string, onItem: () => void): void {
    this.place += 1;
    this.#take(SPACE);
    while (!this.isAt(close)) {
      onItem();
      this.#take(SPACE);
      if (this.isAt(",")) this.place += 1;
      this.#take(SPACE);
    }
    this.place += 1;
  }

  #take(pattern: RegExp): string {
    pattern.lastIndex = this.place;
    const found = pattern.exec(this.#json)?.[0];
    if (found === undefined) throw new Error(`not well-formed JSON at ${this.place}`);
    this.place += found.length;
    return found;
  }
}
