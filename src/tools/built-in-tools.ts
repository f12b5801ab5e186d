// The tools that every Session can offer.

import { editFileTool } from "./edit-file.js";
import { execCommandTool } from "./exec-command.js";
import { readFileTool } from "./read-file.js";
import { readImageTool } from "./read-image.js";
import { type RunSubagent, runSubagentTool } from "./run-subagent.js";
import type { Tool } from "./tool.js";
import { Workspace } from "./workspace.js";
import { writeFileTool } from "./write-file.js";

export interface BuiltInToolsOptions {
  /** Absolute path of the Workspace. */
  workspace: string;
  allowOutsideWorkspace: boolean;
  /** The environment of commands, secrets already removed (`scrubEnvironment`). */
  environment: Readonly<Record<string, string>>;
  /** Left out where no child may be started: in a child. */
  runSubagent?: RunSubagent;
}

export function builtInTools(options: BuiltInToolsOptions): Tool[] {
  const { environment, runSubagent } = options;
  const workspace = new Workspace(options.workspace, options.allowOutsideWorkspace);
  return [
    execCommandTool({ workspace, environment }),
    readFileTool(workspace),
    writeFileTool(workspace),
    editFileTool(workspace),
    readImageTool(workspace),
    ...(runSubagent === undefined ? [] : [runSubagentTool(runSubagent)]),
  ];
}
