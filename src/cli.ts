#!/usr/bin/env node
// The command line. `omnid` alone serves; everything else is a subcommand, loaded only when it is called.

import { Command } from "commander";
import { VERSION } from "./version.js";

const out = (line: string) => void process.stdout.write(`${line}\n`);

const program = new Command("omnid")
  .description("A server for AI agents: prompts in, OmniMessages out, over SSE that loses none of them.")
  .version(VERSION)
  .showHelpAfterError();

program
  .command("serve", { isDefault: true })
  .description("run the server until a signal ends it; configured by environment variables")
  .addHelpText(
    "after",
    "\nExit codes: 0 ended by a signal, in order; 1 cannot start; 75 another server has the data directory; 78 the configuration is wrong.",
  )
  .action(async () => {
    const { serve } = await import("./main.js");
    await serve();
  });

program
  .command("verify")
  .description("check a Trace against every ordering guarantee of the protocol")
  .argument("<trace>", "a trace file (JSON Lines), or the URL of a Session: http://host:port/api/sessions/<id>")
  .option("--token <token>", "bearer token for a URL", process.env.OMNID_TOKEN)
  .addHelpText("after", "\nExit codes: 0 no violation; 1 violations, one line each; 2 the trace cannot be read.")
  .action(async (target: string, { token }: { token?: string }) => {
    const { verify } = await import("./cli/verify.js");
    process.exitCode = await verify(target, { out, ...(token === undefined ? {} : { token }) });
  });

program
  .command("models")
  .description("list the models of the configuration: which can be used, and why the others cannot")
  .option("--json", "as GET /api/models answers")
  .addHelpText("after", "\nExit codes: 0 listed; 78 the configuration is wrong.")
  .action(async ({ json = false }: { json?: boolean }) => {
    const { withConfiguration } = await import("./cli/configuration.js");
    const { models } = await import("./cli/models.js");
    process.exitCode = await withConfiguration(process.env, (config) => models(config, { out, json }));
  });

program
  .command("doctor")
  .description("send one tiny request to each model that can be used, and say what came back")
  .argument("[models...]", "provider/modelId of the models to ask; all of them unless named")
  .addHelpText(
    "after",
    "\nEach request asks for 16 tokens at most, at the provider's price." +
      "\nExit codes: 0 every model answered; 1 one did not; 78 the configuration is wrong.",
  )
  .action(async (only: string[]) => {
    const { withConfiguration } = await import("./cli/configuration.js");
    const { doctor } = await import("./cli/doctor.js");
    process.exitCode = await withConfiguration(process.env, (config) => doctor(config, { only, out }));
  });

await program.parseAsync();
