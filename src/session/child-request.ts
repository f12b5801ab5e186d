// What a child gets of the Session that it works for: everything but the conversation and the tool for children of its own.

import type { ThinkingLevel } from "../engine/ports.js";
import type { SessionMetaPayload } from "../protocol/payloads.js";
import { RUN_SUBAGENT, type SubagentTask } from "../tools/run-subagent.js";
import type { SessionRecord } from "./session-record.js";
import { isDefaultSystemPrompt } from "./system-prompt.js";
import type { CreateSession } from "./types.js";

const MAX_TITLE_CHARS = 200;

/** @param thinkingLevel that of the Task that asks */
export function childRequest(
  parent: SessionRecord,
  meta: SessionMetaPayload | undefined,
  { description }: SubagentTask,
  thinkingLevel: ThinkingLevel,
): CreateSession {
  const { provider, modelId, workspace, approvalMode, maxTurns, tools, allowOutsideWorkspace } = parent;
  const systemPrompt = ownPrompt(parent, meta);
  const title = Array.from(description.trim()).slice(0, MAX_TITLE_CHARS).join("");
  return {
    provider,
    modelId,
    workspace,
    approvalMode,
    thinkingLevel,
    ...(title === "" ? {} : { title }),
    ...(systemPrompt === undefined ? {} : { systemPrompt }),
    ...(maxTurns === undefined ? {} : { maxTurns }),
    ...(tools === undefined ? {} : { tools: tools.filter((name) => name !== RUN_SUBAGENT) }),
    ...(allowOutsideWorkspace === undefined ? {} : { allowOutsideWorkspace }),
  };
}

/** The parent's system prompt, unless it is the default one, which names the tools: the child has one of its own. */
function ownPrompt({ workspace }: SessionRecord, meta: SessionMetaPayload | undefined): string | undefined {
  if (meta === undefined || isDefaultSystemPrompt(meta.system_prompt, workspace)) return undefined;
  return meta.system_prompt;
}
