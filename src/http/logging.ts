// The log: JSON lines on standard error, one for each request. No line holds a query, an Authorization header or a
// secret: the first two are never handed to it, and every line is searched for known secrets before it is written.

import pino, { type DestinationStream, type Logger } from "pino";
import { systemClock } from "../clock.js";
import type { Config } from "../config.js";
import { standardError } from "./standard-error.js";

/** Shorter ones would also hit ordinary words, and could break the line. */
const MIN_SECRET_LENGTH = 4;

export function createLog(
  config: Pick<Config, "logLevel" | "secrets">,
  destination: DestinationStream = standardError(systemClock()),
): Logger {
  const scrub = createScrubber(config.secrets);
  return pino(
    { level: config.logLevel, base: null, timestamp: pino.stdTimeFunctions.isoTime, hooks: { streamWrite: scrub } },
    destination,
  );
}

/** @returns a function that blanks every known secret, and any `access_token`, in a line of JSON. */
export function createScrubber(secrets: readonly string[]): (line: string) => string {
  // A secret stands in the line as JSON writes it. The longest goes first: one may be a part of another.
  const forms = secrets
    .filter((secret) => secret.length >= MIN_SECRET_LENGTH)
    .flatMap((secret) => [JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)])
    .sort((a, b) => b.length - a.length);
  const known = [...new Set(forms)].map((form) => form.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&"));
  const pattern = new RegExp([...known, '(?<=access_token=)[^&"\\s\\\\]+'].join("|"), "g");
  return (line) => line.replace(pattern, "[redacted]");
}
