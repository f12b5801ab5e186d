// What the demo model says, as a pure function of the context: the same context always gives the same answer.

import type { LLMRequest } from "../engine/ports.js";
import { isPayload } from "../protocol/guards.js";
import type { ToolCallOutputPayload } from "../protocol/payloads.js";

export interface DemoCall {
  name: string;
  arguments: Record<string, unknown>;
}

/** One answer, in the order in which it is streamed. */
export interface DemoAnswer {
  thinking: string;
  text: string;
  calls: DemoCall[];
  /** Set when the Request is to fail once the text is out. */
  error?: string;
}

const HELP = [
  "I am omnid's demo model: no network, no key, and the same answer every time. The loop and the tools behind me are real. Try:",
  "- `/run <command>` runs a command",
  "- `/read <path>` reads a file",
  "- `/write <path> <text>` writes one",
  "- `/think <text>` thinks aloud",
  "- `/parallel <command> && <command>` runs two at once",
  "- `/subagent <prompt>` hands a prompt to a child",
  "- `/fail` makes this Request fail",
].join("\n");

type Context = LLMRequest["messages"];

/** The answer to a context. */
export function demoAnswer(request: Pick<LLMRequest, "messages" | "tools">): DemoAnswer {
  const tail = tailOf(request.messages);
  const outputs = tail.flatMap((message) => (isPayload(message, "tool_call_output") ? [message.payload] : []));
  const prompts = tail
    .flatMap((message) => (isPayload(message, "text") ? [message.payload.text.trim()] : []))
    .filter((text) => text !== "" && !isCarryOver(text));
  const prompt = prompts.at(-1);
  if (outputs.length === 0) return answerTo(prompt ?? "", request);
  const report = { thinking: "", text: reportOn(outputs, request.messages), calls: [] };
  if (prompt === undefined) return report;
  // Somebody steered while the tools ran: first what they gave, then what was asked.
  const next = answerTo(prompt, request);
  return { ...next, text: `${report.text}\n\n${next.text}` };
}

/** Everything behind the last thing the assistant said. */
function tailOf(messages: Context): Context {
  let from = messages.length;
  while (from > 0 && messages[from - 1]?.payload.role === "user") from--;
  return messages.slice(from);
}

const isCarryOver = (text: string): boolean => /^\[(?:turn_aborted|turn_retried|context_summary)\]/.test(text);

function answerTo(prompt: string, request: Pick<LLMRequest, "messages" | "tools">): DemoAnswer {
  const [, command = "", rest = ""] = /^\/(\w+)\s*([\s\S]*)$/.exec(prompt) ?? [];
  const args = rest.trim();
  const call = (name: string, list: Record<string, unknown>[], thinking: string, text: string): DemoAnswer => {
    if (!request.tools.some((tool) => tool.name === name)) {
      return say(`I would call \`${name}\`, but it is not offered in this Session.`);
    }
    return { thinking, text, calls: list.map((each) => ({ name, arguments: each })) };
  };
  switch (command) {
    case "run":
      if (args === "") return say("Give me a command, for example `/run ls -la`.");
      return call(
        "exec_command",
        [{ cmd: args }],
        `I was asked to run \`${args}\`. I will call exec_command and look at what it prints.`,
        `Running \`${args}\`.`,
      );
    case "parallel": {
      const commands = args
        .split("&&")
        .map((each) => each.trim())
        .filter((each) => each !== "");
      if (commands.length === 0) return say("Give me two commands, for example `/parallel date && uname -a`.");
      return call(
        "exec_command",
        commands.map((cmd) => ({ cmd })),
        `These ${commands.length} commands do not depend on each other, so I can ask for all of them in one answer.`,
        `Running ${commands.length} commands at once.`,
      );
    }
    case "read":
      if (args === "") return say("Give me a path, for example `/read README.md`.");
      return call("read_file", [{ file_path: args }], `I need the contents of ${args}.`, `Reading \`${args}\`.`);
    case "write": {
      const [, path = "", content = ""] = /^(\S+)\s+([\s\S]+)$/.exec(args) ?? [];
      if (path === "") return say("Give me a path and a text, for example `/write notes.txt hello`.");
      return call(
        "write_file",
        [{ file_path: path, content }],
        `${content.length} characters are to go into ${path}.`,
        `Writing \`${path}\`.`,
      );
    }
    case "subagent":
      if (args === "") return say("Give me a prompt for the child, for example `/subagent /run date`.");
      return call(
        "run_subagent",
        [{ prompt: args, description: shortened(args, 40) }],
        "This is a piece of work of its own, so a child can have it.",
        "Handing this to a subagent.",
      );
    case "think":
      return {
        thinking: args || "There is nothing in particular to think about.",
        text: "That is what I thought about it. I am only a demo model, so the thought was yours.",
        calls: [],
      };
    case "fail":
      return {
        thinking: "I was asked to fail, and I will.",
        text: "",
        calls: [],
        error: "the demo model was asked to fail",
      };
    default:
      return /\bsummar(?:y|i[sz]e)\b/i.test(prompt) ? say(summaryOf(request.messages)) : greet(prompt);
  }
}

const say = (text: string): DemoAnswer => ({ thinking: "", text, calls: [] });

const greet = (prompt: string): DemoAnswer => ({
  thinking: "No command that I know, so I will introduce myself.",
  text: prompt === "" ? HELP : `You said: "${shortened(prompt, 80)}"\n\n${HELP}`,
  calls: [],
});

function summaryOf(messages: Context): string {
  const asked = messages.flatMap((message) =>
    isPayload(message, "text") && message.payload.role === "user" && !isCarryOver(message.payload.text)
      ? [message.payload.text]
      : [],
  );
  const called = messages.filter((message) => isPayload(message, "tool_call")).length;
  const lines = asked.slice(0, -1).map((text) => `- ${shortened(text, 80)}`);
  return [`Summary by the demo model: ${lines.length} prompts and ${called} tool calls so far.`, ...lines].join("\n");
}

function reportOn(outputs: readonly ToolCallOutputPayload[], messages: Context): string {
  return outputs
    .map((output) => `${headline(output, titleOf(output, messages))}\n\n${quoted(output.output)}`)
    .join("\n\n");
}

function titleOf(output: ToolCallOutputPayload, messages: Context): string {
  const call = messages.findLast(
    (message) => isPayload(message, "tool_call") && message.payload.tool_call_id === output.tool_call_id,
  );
  if (call === undefined || !isPayload(call, "tool_call")) return "The tool";
  const main = /"(?:cmd|file_path|description)":("(?:[^"\\]|\\.)*")/.exec(call.payload.arguments)?.[1];
  return main === undefined ? `\`${call.payload.name}\`` : `\`${shortened(String(JSON.parse(main)), 60)}\``;
}

function headline({ stop_reason, exit_code, output }: ToolCallOutputPayload, title: string): string {
  switch (stop_reason) {
    case "aborted":
      return /denied/i.test(output) ? `${title} was denied, so I left it.` : `${title} was interrupted.`;
    case "timeout":
      return `${title} took too long and was stopped.`;
    case "failed":
    case "malformed":
      return `${title} failed.`;
    default:
      return exit_code === undefined ? `${title} is done.` : `${title} ended with exit code ${exit_code}.`;
  }
}

const QUOTED_LINES = 12;

function quoted(output: string): string {
  const lines = output.trimEnd().split("\n");
  const shown = lines.slice(0, QUOTED_LINES).map((line) => shortened(line, 160));
  if (lines.length > QUOTED_LINES) shown.push(`(and ${lines.length - QUOTED_LINES} more lines)`);
  const text = shown.join("\n");
  // Longer than any within, as where a subagent's answer quotes an output itself.
  const longest = (text.match(/`+/g) ?? []).reduce((most, run) => Math.max(most, run.length), 2);
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}

/** Cut between characters, never inside one. */
function shortened(text: string, max: number): string {
  const line = text.replace(/\s+/g, " ").trim();
  const characters = Array.from(line.slice(0, max * 2));
  return characters.length <= max ? line.slice(0, max * 2) : `${characters.slice(0, max).join("")}…`;
}
