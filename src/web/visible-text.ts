// What a person decides on, as it is and not as it looks: characters that cannot be seen, or that turn others around,
// stand there by their numbers. Otherwise one would allow what reads as something else.

/** Controls, formats, what fonts leave out, half characters, and every blank that is no space. */
const UNSEEN = /(?![\n\t ])[\p{Cc}\p{Cf}\p{Cs}\p{Zs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;
/** What belongs to an emoji of several parts, which is seen as one: it is left where it is. */
const IN_EMOJI =
  /(?<=\p{Extended_Pictographic}\p{Emoji_Modifier}?)\ufe0f|(?<=\p{Extended_Pictographic}(?:\p{Emoji_Modifier}|\ufe0f)?)\u200d(?=\p{Extended_Pictographic})/gu;

/** The text with what is unseen in it as `⟨U+202E⟩`. Line ends, tabs and spaces stay. */
export function visibleText(text: string): string {
  if (text.search(UNSEEN) < 0) return text;
  const kept = new Set<number>();
  for (const { index } of text.matchAll(IN_EMOJI)) kept.add(index);
  return text.replace(UNSEEN, (character, offset: number) => (kept.has(offset) ? character : numberOf(character)));
}

const numberOf = (character: string): string =>
  `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
