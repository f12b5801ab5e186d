// `omnid tail`: what a Session says, from its last messages on, until it is interrupted.

import { OmnidError, type View } from "../client/index.js";
import { systemClock } from "../clock.js";
import { EXIT_UNREACHABLE } from "../exit-codes.js";
import { toLine } from "../protocol/message.js";
import { connect, type ServerOptions } from "./connect.js";
import { findSession } from "./find-session.js";
import { printableJson } from "./printable.js";
import { Terminal } from "./terminal.js";
import { Transcript } from "./transcript.js";
import { Unseen } from "./unseen.js";
import { joined, watch } from "./watch.js";

export interface TailOptions extends ServerOptions {
  /** How many of the last messages are shown first. */
  lines: number;
  json?: boolean;
}

/** @returns the exit code: 0 ended by a signal or with its Session, 2 no server or refused, 64, 78. */
export async function tail(name: string, options: TailOptions, io: NodeJS.Process = process): Promise<number> {
  const terminal = new Terminal({ stdout: io.stdout, stderr: io.stderr, env: io.env });
  const connected = await connect(options, { start: false }, io.env);
  if (!connected.ok) {
    for (const problem of connected.problems) terminal.line(`omnid: ${problem}`);
    return connected.exitCode;
  }
  const over = new AbortController();
  const { signal } = over;
  const leave = () => over.abort();
  let interrupts = 0;
  const interrupt = () => {
    interrupts += 1;
    if (interrupts > 2) io.exit(0);
    leave();
  };
  io.on("SIGINT", interrupt).on("SIGTERM", leave);
  try {
    const { sessionId } = await findSession(connected.client, name, { signal });
    const following = connected.client.session(sessionId).follow({ pageSize: 1000, signal });
    const unseen = new Unseen();
    const transcript = new Transcript({ terminal, unseen, now: systemClock().now, withPrompts: true });
    const show = (view: View) => {
      if (options.json !== true) return transcript.show(view);
      for (const { message } of unseen.take(view)) terminal.answer(`${printableJson(toLine(message))}\n`);
    };
    await watch(following, ({ cursor }) => cursor !== null || undefined);
    unseen.skip(following.view, options.lines);
    await watch(following, async () => show(await joined(following, unseen.from)));
    terminal.status("");
    if (following.view.connection.status === "gone") terminal.line("The Session is gone.", "dim");
    return 0;
  } catch (error) {
    if (signal.aborted) return 0;
    if (!(error instanceof OmnidError)) throw error;
    terminal.line(`omnid: ${error.message}`, "red");
    return EXIT_UNREACHABLE;
  } finally {
    io.off("SIGINT", interrupt).off("SIGTERM", leave);
  }
}
