// `omnid chat`: one prompt, or one after the other, with what comes of it in the terminal.

import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import {
  type ApprovalMode,
  type Following,
  OmnidError,
  type Session,
  type SessionClient,
  type Task,
  type View,
} from "../client/index.js";
import { systemClock } from "../clock.js";
import { EXIT_INTERRUPTED, EXIT_UNREACHABLE, EXIT_USAGE } from "../exit-codes.js";
import { toLine } from "../protocol/message.js";
import { Approving } from "./approving.js";
import { type Connected, connect, type ServerOptions } from "./connect.js";
import { findSession } from "./find-session.js";
import { printableJson } from "./printable.js";
import { askAt, type Questions } from "./questions.js";
import { retried } from "./retried.js";
import { endOf } from "./task-end.js";
import { Terminal } from "./terminal.js";
import { Transcript } from "./transcript.js";
import { shortened } from "./transcript-text.js";
import { isWhole, Unseen } from "./unseen.js";
import { joined, watch } from "./watch.js";

export interface ChatOptions extends ServerOptions {
  prompt?: string;
  session?: string;
  /** `provider/modelId`. */
  model?: string;
  workspace?: string;
  approvalMode?: ApprovalMode;
  yes?: boolean;
  json?: boolean;
}

const MAX_TITLE = 80;
/** Some seconds: a proxy that changes servers, a server that starts. */
const SUBMIT_TRIES = 5;

/** @returns the exit code: 0 completed, 1 the Task failed, 2 no server or refused, 64, 75, 78, 130 interrupted. */
export async function chat(options: ChatOptions, io: NodeJS.Process = process): Promise<number> {
  const terminal = new Terminal({ stdout: io.stdout, stderr: io.stderr, env: io.env });
  const prompt = await promptOf(options.prompt, io.stdin);
  if (prompt === "" || (prompt === undefined && options.json === true)) {
    terminal.line("omnid: there is no prompt");
    return EXIT_USAGE;
  }
  const connected = await connect(options, { start: true }, io.env);
  if (!connected.ok) {
    for (const problem of connected.problems) terminal.line(`omnid: ${problem}`);
    return connected.exitCode;
  }
  const conversation = new Conversation(connected, terminal, options, io);
  try {
    return await conversation.run(prompt);
  } catch (error) {
    if (conversation.isLeaving) return EXIT_INTERRUPTED;
    if (!(error instanceof OmnidError)) throw error;
    terminal.line(`omnid: ${error.message}`, "red");
    for (const { path, message } of error.details) terminal.line(`  ${path}: ${message}`, "red");
    return EXIT_UNREACHABLE;
  } finally {
    terminal.status("");
    await conversation.end();
  }
}

/** What is to be said: the argument, what comes through a pipe, or both, the argument first. */
async function promptOf(argument: string | undefined, stdin: NodeJS.ReadStream): Promise<string | undefined> {
  if (stdin.isTTY === true) return argument?.trim();
  let piped = "";
  for await (const chunk of stdin.setEncoding("utf8")) piped += chunk;
  const parts = [argument === "-" ? "" : (argument ?? ""), piped].map((part) => part.trim());
  return parts.filter((part) => part !== "").join("\n\n");
}

class Conversation {
  readonly #connected: Connected;
  readonly #terminal: Terminal;
  readonly #options: ChatOptions;
  readonly #io: NodeJS.Process;
  readonly #leaving = new AbortController();
  /** Ends every call and every wait: a server that does not answer holds nobody. */
  readonly #signal = this.#leaving.signal;
  readonly #unseen = new Unseen();
  readonly #transcript: Transcript;
  #session: SessionClient | undefined;
  #following: Following | undefined;
  #title: string | null = null;
  #isRunning = false;
  #interrupts = 0;

  constructor(connected: Connected, terminal: Terminal, options: ChatOptions, io: NodeJS.Process) {
    this.#connected = connected;
    this.#terminal = terminal;
    this.#options = options;
    const { now } = systemClock();
    this.#transcript = new Transcript({ terminal, unseen: this.#unseen, now, withPrompts: false });
    this.#io = io;
    io.on("SIGINT", this.#interrupt);
    io.on("SIGTERM", this.#leave);
  }

  /** With a prompt: says it and shows what comes of it. Without: asks for prompts until there are no more. */
  async run(prompt: string | undefined): Promise<number> {
    const session = await this.#open(prompt);
    this.#session = this.#connected.client.session(session.sessionId);
    this.#title = session.title;
    this.#following = this.#session.follow({ pageSize: 1000, signal: this.#signal });
    await watch(this.#following, ({ task }) => task !== null || undefined);
    this.#unseen.skip(this.#following.view);
    const { stdin, stderr } = this.#io;
    const isPerson = stdin.isTTY === true;
    const questions = isPerson ? askAt({ stdin, stderr }, this.#interrupt) : undefined;
    if (prompt !== undefined) return this.#say(this.#session, prompt, questions);
    this.#terminal.line(`${session.provider}/${session.modelId} in ${session.workspace}. Ctrl-D ends.`, "dim");
    return this.#converse(this.#session, questions as Questions, session);
  }

  get isLeaving(): boolean {
    return this.#signal.aborted;
  }

  /** Also of what was started for it; a signal counts until that has ended. */
  async end(): Promise<void> {
    this.#following?.close();
    try {
      await this.#connected.close();
    } finally {
      this.#io.off("SIGINT", this.#interrupt);
      this.#io.off("SIGTERM", this.#leave);
    }
  }

  async #converse(session: SessionClient, questions: Questions, { sessionId }: Session): Promise<number> {
    let code = 0;
    // What is under way comes first: it may be waiting for this very person.
    const { task } = (this.#following as Following).view;
    if (task?.taskId !== undefined) code = await this.#toEnd(session, task.taskId, questions);
    while (!this.#signal.aborted) {
      this.#terminal.endLine();
      const input = await questions.ask("> ", this.#signal);
      if (input.kind !== "answer") break;
      if (input.text.trim() === "") continue;
      // What was said first is what a list shows.
      const title = shortened(input.text, MAX_TITLE);
      if (this.#title === null) void session.update({ title }, { signal: this.#signal }).catch(() => {});
      this.#title = input.text;
      code = await this.#say(session, input.text, questions);
      this.#interrupts = 0;
    }
    this.#terminal.line(`omnid chat --session ${sessionId} goes on here.`, "dim");
    return this.#signal.aborted ? EXIT_INTERRUPTED : code;
  }

  async #open(prompt: string | undefined): Promise<Session> {
    const { client } = this.#connected;
    const call = { signal: this.#signal };
    const { session: id, model, workspace, approvalMode, yes } = this.#options;
    if (id !== undefined) {
      const session = await findSession(client, id, call);
      if (approvalMode === undefined) return session;
      return client.session(session.sessionId).update({ approvalMode }, call);
    }
    const [provider, ...rest] = (model ?? "").split("/");
    const mode = approvalMode ?? (yes === true ? "allow-all" : undefined);
    const body = {
      ...(model === undefined ? {} : { provider, modelId: rest.join("/") }),
      ...(mode === undefined ? {} : { approvalMode: mode }),
      ...(prompt === undefined ? {} : { title: shortened(prompt, MAX_TITLE) }),
    };
    if (workspace !== undefined) return client.sessions.create({ ...body, workspace: resolve(workspace) }, call);
    if (!isLocal(this.#connected.url)) return client.sessions.create(body, call);
    try {
      return await client.sessions.create({ ...body, workspace: this.#io.cwd() }, call);
    } catch (error) {
      // A server in a container listens here and does not see this folder.
      if (!(error instanceof OmnidError) || error.code !== "workspace_not_found") throw error;
      return client.sessions.create(body, call);
    }
  }

  /** One Task from its prompt to its end. */
  async #say(session: SessionClient, input: string, questions: Questions | undefined): Promise<number> {
    this.#isRunning = true;
    try {
      const once = { idempotencyKey: randomUUID(), signal: this.#signal };
      const { taskId, queued } = await retried(() => session.submit({ input, whenBusy: "queue" }, once), {
        signal: this.#signal,
        maxTries: SUBMIT_TRIES,
      });
      if (queued > 0) {
        const place = queued === 1 ? "It runs next." : `It waits behind ${queued} others.`;
        this.#terminal.line(place, "dim");
      }
      return await this.#toEnd(session, taskId, questions);
    } finally {
      this.#isRunning = false;
    }
  }

  /** Shows a Task, and asks about what it wants to do, until it is over. */
  async #toEnd(session: SessionClient, taskId: string, questions: Questions | undefined): Promise<number> {
    const following = this.#following as Following;
    const { json = false, yes = false } = this.#options;
    const show = json ? this.#showJson : (view: View) => this.#transcript.show(view);
    const approving = new Approving({
      client: this.#connected.client,
      terminal: this.#terminal,
      signal: this.#signal,
      questions,
      allowsAll: yes,
      showCall: (approval) => {
        if (!json) this.#transcript.showCall(approval);
      },
      onEnd: this.#leave,
    });
    const isOver = untilEnd(session, taskId, this.#signal);
    this.#isRunning = true;
    const ended = await watch(following, async (view, again) => {
      if (approving.isAsking) {
        approving.look(view, again);
        return undefined;
      }
      const shown = await joined(following, this.#unseen.from);
      show(shown);
      approving.look(shown, again);
      return approving.isAsking ? undefined : isOver(shown);
    });
    approving.stop();
    this.#isRunning = false;
    return this.#codeOf(ended);
  }

  readonly #showJson = (view: View): void => {
    for (const { message } of this.#unseen.take(view)) this.#terminal.answer(`${printableJson(toLine(message))}\n`);
  };

  #codeOf(task: Task | undefined): number {
    this.#terminal.status("");
    if (task === undefined && this.#signal.aborted) return EXIT_INTERRUPTED;
    const { code, problem } = endOf(task, (this.#following as Following).view);
    if (problem !== undefined) this.#terminal.line(`omnid: ${problem}`, "red");
    return code;
  }

  /** The first ends the Task, the second leaves, the third does not wait for anything. */
  readonly #interrupt = (): void => {
    this.#interrupts += 1;
    if (this.#interrupts > 2) this.#io.exit(EXIT_INTERRUPTED);
    if (!this.#isRunning || this.#interrupts > 1 || this.#session === undefined) {
      this.#leave();
      return;
    }
    this.#terminal.line("Aborting. Once more leaves.", "yellow");
    this.#session.abort(undefined, { signal: this.#signal }).catch((error) => {
      if (!this.isLeaving) this.#terminal.line(`! not aborted: ${String(error)}`, "red");
    });
  };

  readonly #leave = (): void => this.#leaving.abort();
}

/** Tells when a Task is over and everything of it is in the view. It asks once for each thing that the stream says. */
function untilEnd(
  session: SessionClient,
  taskId: string,
  signal: AbortSignal,
): (view: View) => Promise<Task | undefined> {
  let asked: View["task"] = null;
  return async (view) => {
    const { task, connection } = view;
    if (task === null || task === asked || task.taskId === taskId) return undefined;
    if (!isWhole(view) || connection.status !== "live") return undefined;
    asked = task;
    try {
      const now = await retried(() => session.task(taskId, { signal }), { signal });
      return now.state === "ended" ? now : undefined;
    } catch (error) {
      // Then the stream says so too.
      if (error instanceof OmnidError && error.code === "session_not_found") return undefined;
      throw error;
    }
  };
}

const isLocal = (url: string): boolean => /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(new URL(url).hostname);
