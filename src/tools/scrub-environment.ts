// What of the server's own environment a command may see.

// Shorter secrets would be found inside harmless values.
const MIN_SECRET_TO_FIND = 6;

/**
 * The environment without the server's settings (`OMNID_*`, its tokens among them), without the variables named in
 * `names` (API keys of configured providers), and without every variable whose value is or holds one of their values
 * or one of `secrets`.
 */
export function scrubEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
  known: { names?: Iterable<string>; secrets?: Iterable<string> } = {},
): Record<string, string> {
  const names = new Set(known.names ?? []);
  const secrets = new Set(known.secrets ?? []);
  for (const name of names) secrets.add(environment[name] ?? "");
  for (const token of (environment.OMNID_TOKENS ?? "").split(",")) {
    secrets.add(token.trim());
    secrets.add(token.slice(token.indexOf(":") + 1).trim());
  }
  secrets.delete("");
  const isSecret = (value: string) =>
    [...secrets].some((secret) => value === secret || (secret.length >= MIN_SECRET_TO_FIND && value.includes(secret)));

  const clean: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment)) {
    if (value === undefined || name.startsWith("OMNID_") || names.has(name) || isSecret(value)) continue;
    clean[name] = value;
  }
  return clean;
}
