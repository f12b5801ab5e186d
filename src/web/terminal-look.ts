// SGR: the look of what a terminal writes next. Colours are those sixteen that the page has in light and dark; of others
// the nearest is taken, so that all of them can be read on its ground.

export interface Look {
  /** 0 to 15, or -1 for the page's own. */
  readonly ink: number;
  readonly ground: number;
  /** Of `STYLES`. */
  readonly styles: ReadonlySet<string>;
}

export const PLAIN: Look = { ink: -1, ground: -1, styles: new Set() };

const STYLES: Record<number, string> = {
  1: "bold",
  2: "dim",
  3: "italic",
  4: "underline",
  7: "inverse",
  9: "struck",
  21: "underline",
};
const ENDS: Record<number, readonly string[]> = {
  22: ["bold", "dim"],
  23: ["italic"],
  24: ["underline"],
  27: ["inverse"],
  29: ["struck"],
};

const names = new WeakMap<Look, string>();

/** Class names of a look. */
export function lookName(look: Look): string {
  const known = names.get(look);
  if (known !== undefined) return known;
  const name = newName(look);
  names.set(look, name);
  return name;
}

/** Inverse is the other way around: ink is ground and ground is ink. */
function newName({ ink, ground, styles }: Look): string {
  if (ink < 0 && ground < 0 && styles.size === 0) return "";
  const isInverse = styles.has("inverse");
  const [front, back] = isInverse ? [ground, ink] : [ink, ground];
  const classes = [...styles].filter((style) => style !== "inverse").map((style) => `sgr-${style}`);
  if (front >= 0) classes.push(`sgr-ink-${front}`);
  if (back >= 0) classes.push(`sgr-ground-${back}`);
  else if (isInverse) classes.push("sgr-inverse");
  return classes.sort().join(" ");
}

/** The look after `ESC [ parameters m`. What is not known here changes nothing. */
export function applySgr(before: Look, parameters: string): Look {
  const list = parameters.split(";");
  let look = before;
  for (let at = 0; at < list.length; at += 1) {
    const parts = (list[at] ?? "").split(":").map(numberOf);
    const code = parts[0] ?? 0;
    if (code === 38 || code === 48 || code === 58) {
      // With colons it is one parameter, with semicolons one for each number.
      const isOne = parts.length > 1;
      const numbers = isOne ? parts.slice(1) : list.slice(at + 1, at + 5).map(numberOf);
      if (!isOne) at += numbers[0] === 5 ? 2 : numbers[0] === 2 ? 4 : 0;
      look = coloured(look, code, colourOf(numbers, isOne));
    } else look = code === 4 && parts[1] === 0 ? without(look, ["underline"]) : applied(look, code);
  }
  return look;
}

const numberOf = (text: string): number => (/^\d{1,5}$/.test(text) ? Number(text) : text === "" ? 0 : -1);

function applied(look: Look, code: number): Look {
  if (code === 0) return PLAIN;
  const style = STYLES[code];
  if (style !== undefined) return { ...look, styles: new Set([...look.styles, style]) };
  const ended = ENDS[code];
  if (ended !== undefined) return without(look, ended);
  const unit = code % 10;
  switch (code - unit) {
    case 30:
      return unit < 8 ? { ...look, ink: unit } : unit === 9 ? { ...look, ink: -1 } : look;
    case 40:
      return unit < 8 ? { ...look, ground: unit } : unit === 9 ? { ...look, ground: -1 } : look;
    case 90:
      return unit < 8 ? { ...look, ink: unit + 8 } : look;
    case 100:
      return unit < 8 ? { ...look, ground: unit + 8 } : look;
    default:
      return look;
  }
}

const without = (look: Look, styles: readonly string[]): Look => ({
  ...look,
  styles: new Set([...look.styles].filter((style) => !styles.includes(style))),
});

function coloured(look: Look, code: number, colour: number | undefined): Look {
  if (colour === undefined || code === 58) return look;
  return code === 38 ? { ...look, ink: colour } : { ...look, ground: colour };
}

/** `5;n`, or `2;r;g;b`; with colons a colour space may stand before the three. */
function colourOf(numbers: readonly number[], isOne: boolean): number | undefined {
  const [way, index = -1] = numbers;
  if (way === 5) return index < 0 || index > 255 ? undefined : index < 16 ? index : nearest(...rgbOf(index));
  if (way !== 2) return undefined;
  const [red = -1, green = -1, blue = -1] = isOne && numbers.length > 4 ? numbers.slice(2) : numbers.slice(1);
  return [red, green, blue].every((each) => each >= 0 && each < 256) ? nearest(red, green, blue) : undefined;
}

/** Of the 256: a cube of six steps each way, then greys. */
function rgbOf(index: number): [number, number, number] {
  if (index >= 232) {
    const grey = 8 + 10 * (index - 232);
    return [grey, grey, grey];
  }
  const step = (place: number) => {
    const level = Math.floor((index - 16) / place) % 6;
    return level === 0 ? 0 : 55 + 40 * level;
  };
  return [step(36), step(6), step(1)];
}

/** One of the sixteen with the same hue, or a grey as bright. */
function nearest(red: number, green: number, blue: number): number {
  const most = Math.max(red, green, blue);
  const least = Math.min(red, green, blue);
  if (most - least < 32) return most < 64 ? 0 : most < 144 ? 8 : most < 224 ? 7 : 15;
  const middle = (most + least) / 2;
  const hue = (red > middle ? 1 : 0) + (green > middle ? 2 : 0) + (blue > middle ? 4 : 0);
  return most > 200 ? hue + 8 : hue;
}
