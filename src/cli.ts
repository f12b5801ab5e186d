#!/usr/bin/env node
// The command line. `omnid` alone serves; everything else is a subcommand, loaded only when it is called.

import { Argument, Command, CommanderError, InvalidArgumentError, Option } from "commander";
import type { ChatOptions } from "./cli/chat.js";
import type { CommandShape, Shell } from "./cli/completion.js";
import { printableText } from "./cli/printable.js";
import type { SessionsOptions } from "./cli/sessions.js";
import type { TailOptions } from "./cli/tail.js";
import { EXIT_INTERRUPTED, EXIT_IO, EXIT_USAGE } from "./exit-codes.js";
import { VERSION } from "./version.js";

const out = (line: string) => void process.stdout.write(`${line}\n`);
const err = (line: string) => void process.stderr.write(`${line}\n`);
let isUnwritable = false;
/**
 * Whoever reads us has seen enough, or the disk is full: a command that has something to close does so, as for a signal.
 * Each write that fails comes here.
 */
const endWithOutput = (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE" && !isUnwritable) {
    isUnwritable = true;
    err(`omnid: standard output: ${error.message}`);
    process.once("exit", () => {
      process.exitCode = EXIT_IO;
    });
  }
  // What it found so far is no result: its code would say that this was all.
  if (!process.emit("SIGTERM", "SIGTERM")) process.exit(EXIT_INTERRUPTED);
};
process.stdout.on("error", endWithOutput);
/** There is nobody left to tell. */
const ignore = () => {};
process.stderr.on("error", ignore);

const program = new Command("omnid")
  .description("A server for AI agents: prompts in, OmniMessages out, over SSE that loses none of them.")
  .version(VERSION)
  .showHelpAfterError("(omnid --help lists the commands, and each has a --help of its own)")
  // It repeats what is wrong, which a script may have from anywhere.
  .configureOutput({ outputError: (text, write) => write(printableText(text)) })
  // It would end the process, before a write that failed is known: what it throws comes to the end of this file.
  .exitOverride();

/** What it is where there is no terminal, as commander has it for the options. */
const USUAL_WIDTH = 80;
/** Text below the options, as wide as those are. */
const below =
  (text: string) =>
  ({ command }: { command: Command }): string =>
    command.createHelp().boxWrap(text, command.configureOutput().getOutHelpWidth?.() ?? USUAL_WIDTH);
const exitCodes = (codes: string) => `\nExit codes: ${codes}; ${EXIT_USAGE} the command line is wrong.`;
const outputCodes = (codes: string) => exitCodes(`${codes}; ${EXIT_IO} the output cannot be written`);
const interruptedCodes = (codes: string) =>
  outputCodes(`${codes}; ${EXIT_INTERRUPTED} interrupted, also by a reader that has seen enough`);
const whole = (text: string): number => {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("It is no whole number.");
  return Number(text);
};
const positive = (text: string): number => {
  const count = whole(text);
  if (count === 0) throw new InvalidArgumentError("It is to be 1 at least.");
  return count;
};
const modelName = (text: string): string => {
  if (!/^[^/]+\/./.test(text)) throw new InvalidArgumentError("It is no provider/modelId: `omnid models` lists them.");
  return text;
};
/** The server that a command talks to. Not a default of commander's: `--help` would show the token. */
const withServer = (command: Command): Command =>
  command
    .option("--url <url>", "the server (OMNID_URL); left out: the one that runs on this machine")
    .option("--token <token>", "its bearer token (OMNID_TOKEN)");

program
  .command("serve", { isDefault: true })
  // Whatever is no command comes here.
  .allowExcessArguments()
  // The usual one names options: it has none.
  .configureHelp({ commandUsage: () => "omnid serve" })
  .description("run the server until a signal ends it; configured by environment variables")
  .addHelpText(
    "after",
    below(
      exitCodes(
        "0 ended by a signal, in order; 1 cannot start, also where the disk is full, or ended at once by a second signal or after OMNID_SHUTDOWN_MS; 75 another server has the data directory; 78 the configuration is wrong",
      ),
    ),
  )
  .action(async (_options: object, command: Command) => {
    const [unknown] = command.args;
    if (unknown !== undefined) command.error(`error: unknown command '${unknown}'`);
    // A server goes on without one.
    process.stdout.off("error", endWithOutput);
    process.stderr.off("error", ignore);
    const { serve } = await import("./main.js");
    await serve();
  });

withServer(program.command("chat"))
  .description("say something to a Session and show what comes of it")
  .argument("[prompt]", "what to say; what comes through a pipe is added to it; without both you are asked")
  .addOption(
    new Option(
      "-s, --session <id>",
      "go on with this Session, its model and its folder; `last` is the one that was active last",
    ).conflicts(["model", "workspace"]),
  )
  .option("-m, --model <provider/modelId>", "of a new Session; left out: the server's default", modelName)
  .option("-w, --workspace <folder>", "of a new Session; left out: this folder, where the server is on this machine")
  .addOption(
    new Option("--approval-mode <mode>", "which calls of tools are asked about").choices([
      "always-ask",
      "read-only",
      "allow-all",
    ]),
  )
  .option("-y, --yes", "allow every call of a tool")
  .option("--json", "print the messages as JSON, one a line")
  .addHelpText(
    "after",
    below(`
The model's answer goes to standard output, all about it to standard error. Where no server runs one is started for as \
long as this takes, on the usual data directory. An approval is answered with y, n, or the reason why not; without a \
terminal, and without --yes, it is denied. Ctrl-C aborts the Task, a second one leaves.
${interruptedCodes(
  "0 the Task completed; 1 it failed, or its server or its Session ended; 2 no server, or it refused; 75 another server has the data directory and is not found; 78 the configuration is wrong",
)}`),
  )
  .action(async (prompt: string | undefined, options: ChatOptions) => {
    const { chat } = await import("./cli/chat.js");
    process.exitCode = await chat({ ...options, ...(prompt === undefined ? {} : { prompt }) });
  });

withServer(program.command("sessions"))
  .description("list the Sessions of a running server, newest activity first")
  .option("-n, --limit <count>", "how many, 1 at least", positive, 20)
  .option("-a, --all", "archived ones too")
  .option("--json", "one a line, as GET /api/sessions has them")
  .addHelpText("after", below(interruptedCodes("0 listed; 2 no server, or it refused; 78 the configuration is wrong")))
  .action(async (options: Omit<SessionsOptions, "out" | "err">) => {
    const { sessions } = await import("./cli/sessions.js");
    process.exitCode = await sessions({ ...options, out, err });
  });

withServer(program.command("tail"))
  .description("show what a Session says as it says it, until you interrupt")
  .argument("<session>", "its id; `last` is the one that was active last")
  .option("-n, --lines <count>", "messages to begin with", whole, 10)
  .option("--json", "print the messages as JSON, one a line")
  .addHelpText(
    "after",
    below(
      outputCodes(
        "0 interrupted, also by a reader that has seen enough, or the Session is gone; 2 no server, or it refused; 78 the configuration is wrong",
      ),
    ),
  )
  .action(async (session: string, options: TailOptions) => {
    const { tail } = await import("./cli/tail.js");
    process.exitCode = await tail(session, options);
  });

program
  .command("verify")
  .description("check a Trace against every ordering guarantee of the protocol")
  .argument("<trace>", "a trace file (JSON Lines), or the URL of a Session: http://host:port/api/sessions/<id>")
  .option("--token <token>", "bearer token for a URL (OMNID_TOKEN)")
  .option("-a, --all", "every violation; without it the first ten of a kind, and how many more there are")
  .addHelpText(
    "after",
    below(interruptedCodes("0 no violation; 1 violations, one line each; 2 the trace cannot be read")),
  )
  .action(async (target: string, { all = false, ...options }: { token?: string; all?: boolean }) => {
    const { verify } = await import("./cli/verify.js");
    const token = options.token ?? process.env.OMNID_TOKEN;
    process.exitCode = await verify(target, { out, err, all, ...(token === undefined ? {} : { token }) });
  });

program
  .command("models")
  .description("list the models of the configuration: which can be used, and why the others cannot")
  .option("--json", "as GET /api/models answers")
  .addHelpText("after", below(interruptedCodes("0 listed; 78 the configuration is wrong")))
  .action(async ({ json = false }: { json?: boolean }) => {
    const { withConfiguration } = await import("./cli/configuration.js");
    const { models } = await import("./cli/models.js");
    process.exitCode = await withConfiguration(process.env, (config) => models(config, { out, json }));
  });

program
  .command("doctor")
  .description(
    "send one tiny request to each model that can be used, connect to each MCP server, and say what came back",
  )
  .argument("[models...]", "provider/modelId of the models to ask, and nothing else; all and everything unless named")
  .addHelpText(
    "after",
    below(`
Each request asks for 16 tokens at most, at the provider's price.
${interruptedCodes("0 everything answered; 1 something did not; 78 the configuration is wrong")}`),
  )
  .action(async (only: string[]) => {
    const { withConfiguration } = await import("./cli/configuration.js");
    const { doctor } = await import("./cli/doctor.js");
    process.exitCode = await withConfiguration(process.env, (config) => doctor(config, { only, out }));
  });

program
  .command("completion")
  .description('print completions for a shell: eval "$(omnid completion bash)"')
  .addArgument(new Argument("<shell>").choices(["bash", "zsh"]))
  .addHelpText("after", below(interruptedCodes("0 printed")))
  .action(async (shell: Shell) => {
    const { completion } = await import("./cli/completion.js");
    process.stdout.write(completion(shell, program.commands.map(shapeOf)));
  });

function shapeOf(command: Command): CommandShape {
  const [argument] = command.registeredArguments;
  return {
    name: command.name(),
    description: command.description(),
    options: command.options.map(({ short, long, flags, description, required, argChoices = [] }) => ({
      flags: [short, long].filter((flag) => flag !== undefined && flag !== null),
      description,
      takesValue: required,
      takesFolder: flags.endsWith("<folder>"),
      choices: argChoices,
    })),
    choices: argument?.argChoices ?? (command.name() === "tail" ? ["last"] : []),
    takesFile: argument?.name() === "trace",
  };
}

try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof CommanderError)) throw error;
  // Its own code for a wrong command line is 1, which is also that of something that failed.
  process.exitCode = error.exitCode === 0 ? 0 : EXIT_USAGE;
}
