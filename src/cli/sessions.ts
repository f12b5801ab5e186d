// `omnid sessions`: the Sessions of a running server, newest activity first.

import { OmnidError, type Session } from "../client/index.js";
import { EXIT_UNREACHABLE } from "../exit-codes.js";
import { connect, type ServerOptions } from "./connect.js";
import { printable, printableJson } from "./printable.js";
import { table } from "./table.js";
import { shortened } from "./transcript-text.js";

export interface SessionsOptions extends ServerOptions {
  limit: number;
  /** Also archived ones. */
  all?: boolean;
  json?: boolean;
  out: (line: string) => void;
  err: (line: string) => void;
}

const MAX_TITLE = 40;

/** @returns the exit code: 0 listed, 2 no server or refused, 64, 78. */
export async function sessions(options: SessionsOptions): Promise<number> {
  const connected = await connect(options, { start: false });
  if (!connected.ok) {
    for (const problem of connected.problems) options.err(printable(`omnid: ${problem}`));
    return connected.exitCode;
  }
  const found: Session[] = [];
  try {
    const query = { limit: Math.min(options.limit, 200), archived: options.all === true };
    for await (const session of connected.client.sessions.all(query)) {
      found.push(session);
      if (found.length >= options.limit) break;
    }
  } catch (error) {
    if (!(error instanceof OmnidError)) throw error;
    options.err(printable(`omnid: ${error.message}`));
    return EXIT_UNREACHABLE;
  }
  if (options.json === true) for (const session of found) options.out(printableJson(JSON.stringify(session)));
  else for (const line of table([HEAD, ...found.map(rowOf)])) options.out(printable(line));
  return 0;
}

const HEAD = ["SESSION", "STATE", "ACTIVE", "MODEL", "TITLE"];

function rowOf(session: Session): string[] {
  const { sessionId, state, pendingApprovals, lastActiveAt, provider, modelId, title } = session;
  const waits = pendingApprovals > 0 ? "asks" : state;
  const active = lastActiveAt.slice(0, 16).replace("T", " ");
  return [sessionId, waits, active, `${provider}/${modelId}`, shortened(title ?? "", MAX_TITLE)];
}
