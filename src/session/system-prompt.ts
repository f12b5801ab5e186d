// What a model is told when the client gives no system prompt. Fixed when the Session is made, so that a provider's
// prompt cache holds.

/** @param workspace absolute path @param toolNames the tools that are offered */
export function defaultSystemPrompt(workspace: string, toolNames: readonly string[]): string {
  const lines = [
    "You are a capable assistant that works for its user in a Workspace, a folder on their machine.",
    `The Workspace is ${workspace}. Relative paths start there.`,
  ];
  if (toolNames.length > 0) {
    lines.push(
      `You have these tools: ${toolNames.join(", ")}. Use them to look at things and to do things rather than guessing.`,
      "A person may have to allow a tool call before it runs. When they deny one, do not repeat it: say what you would",
      "have done, or find another way. Read an error in a tool's output and mend its cause before you try again.",
    );
  }
  lines.push("Answer in the user's language, briefly and exactly. Say what you did and what you could not do.");
  return lines.join("\n");
}

/** True for what `defaultSystemPrompt` gives in this Workspace, whatever the tools are. */
export function isDefaultSystemPrompt(prompt: string, workspace: string): boolean {
  const names = /^You have these tools: (.*)\. Use them/m.exec(prompt)?.[1]?.split(", ") ?? [];
  return prompt === defaultSystemPrompt(workspace, names);
}
