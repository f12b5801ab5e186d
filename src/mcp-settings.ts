// What the settings of an MCP server (`env`, `headers`, the query of its `url`) hold that nobody may read: in the
// server's own words every value of some length is blanked; what is blanked everywhere must also not be taken for an
// ordinary word, a number or a path, or half of the log would go with it.

export type McpSettings =
  | { env: Readonly<Record<string, string>> }
  | { url: string; headers: Readonly<Record<string, string>> };

/** Settings that are no secret, by their names. */
const NO_SECRET =
  /^(?:PATH|HOME|USER|SHELL|LANG|TERM|TZ|NODE_ENV|[A-Z_]*_(?:PATH|HOME|DIR|ROOT)|accept|content-type|user-agent)$/i;

/** Values that are no secret by their looks: paths as systems have them (a key may begin with a slash too), and hosts. */
const PLAIN = new RegExp(
  [
    String.raw`^(?:~|\.\.?)(?:/[\w.@+-]*)+$`,
    "^/(?:app|bin|data|dev|etc|home|lib|media|mnt|opt|private|proc|root|run|sbin|srv|sys|tmp|Users|usr|var|Volumes|workspaces?)" +
      String.raw`(?:/[\w.@+-]*)*$`,
    String.raw`^[a-z]+://[\w.-]+(?::\d+)?/?$`,
  ].join("|"),
);

/** In a server's own words, shorter ones would make holes in ordinary words. */
const MIN_LENGTH = 4;
/** Of what could be one everywhere, and of a word that is one by itself: "Bearer x" hides x. */
const LONG = 8;
const BLANK = "[redacted]";

/** @returns what is blanked wherever it occurs: long values and their long words, and shorter ones that tell themselves apart. */
export function secretsOf(server: McpSettings): string[] {
  return valuesOf(server)
    .filter((value) => !PLAIN.test(value))
    .flatMap((value) => [...(value.length >= LONG || looksMade(value) ? [value] : []), ...longWords(value)]);
}

/**
 * @returns a function that makes one line of what a server said and blanks every value of its settings in it, also one
 * that the text was cut in the middle of.
 */
export function settingsHider(server: McpSettings): (text: string) => string {
  const values = valuesOf(server).flatMap((value) => [value, ...longWords(value)]);
  const forms = values.flatMap((value) => [value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value)]);
  const hidden = [...new Set(forms.map(oneLine))]
    .filter((form) => form.length >= MIN_LENGTH)
    .sort((a, b) => b.length - a.length);
  if (hidden.length === 0) return oneLine;
  const pattern = new RegExp(hidden.map((form) => form.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&")).join("|"), "g");
  return (text) => hidden.reduce(withoutHalves, oneLine(text).replace(pattern, BLANK));
}

const oneLine = (text: string): string => text.trim().replace(/\s+/g, " ");

function valuesOf(server: McpSettings): string[] {
  const query = "url" in server ? [...new URL(server.url).searchParams] : [];
  const settings = Object.entries("url" in server ? server.headers : server.env);
  return [...settings, ...query].filter(([name]) => !NO_SECRET.test(name)).map(([, value]) => value);
}

const longWords = (value: string): string[] => value.split(/\s+/).filter((word) => word.length >= LONG);

/** Neither a word nor a number. */
const looksMade = (value: string): boolean => value.length >= 6 && /[a-z]/i.test(value) && /\d/.test(value);

/** Without the end of the secret at the beginning, and its beginning at the end. */
function withoutHalves(text: string, secret: string): string {
  let clean = text;
  for (let kept = Math.min(secret.length - 1, clean.length); kept >= MIN_LENGTH; kept--) {
    if (clean.startsWith(secret.slice(-kept))) clean = `${BLANK}${clean.slice(kept)}`;
    if (clean.endsWith(secret.slice(0, kept))) clean = `${clean.slice(0, -kept)}${BLANK}`;
  }
  return clean;
}
