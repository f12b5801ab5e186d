// A new Session on disk: its Workspace, its record and a Trace of one record, the `session_meta`. All or nothing.

import { rm } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { emptyTokenCounts, sessionMeta } from "../protocol/builders.js";
import { toLine } from "../protocol/message.js";
import { ok, type Result, refuse } from "../result.js";
import { MCP_PREFIX } from "../tools/mcp-names.js";
import { makeFolder } from "../trace/make-folder.js";
import { onDisk } from "../trace/storage-error.js";
import type { Trace } from "../trace/trace-store.js";
import { environmentOf, isDirectory } from "./load.js";
import type { SessionProcess } from "./process.js";
import { recordFile, type SessionRecord } from "./session-record.js";
import { defaultSystemPrompt } from "./system-prompt.js";
import type { CreateOptions, CreateSession, Owner, SessionRefusal } from "./types.js";

/** A Session on disk. */
export interface Made {
  record: SessionRecord;
  trace: Trace;
}

/** `parentSessionId`: whose child it is. */
export async function createSession(
  shared: SessionProcess,
  request: CreateSession,
  owner: Owner,
  { beforeRecorded, parentSessionId }: CreateOptions & { parentSessionId?: string } = {},
): Promise<Result<Made, SessionRefusal>> {
  await shared.mcp?.settled();
  const checked = await check(shared, request);
  if (!checked.ok) return checked;
  const record = recordOf(shared, request, owner, parentSessionId);
  const meta = metaLine(shared, request, record);
  if (!meta.ok) return meta;
  const records = async function* () {
    if (record.ownsWorkspace) await makeWorkspace(record.workspace);
    yield [meta.value];
  };
  try {
    const { sessionId } = record;
    await beforeRecorded?.(sessionId);
    const undo = () => dropWorkspace(shared, record);
    const trace = await shared.traces.create(sessionId, records(), recordFile(record), undo);
    return ok({ record, trace });
  } catch (error) {
    shared.log.error({ err: error }, "a Session could not be made");
    return refuse("storage_failed", "the Session could not be recorded");
  }
}

async function check(shared: SessionProcess, request: CreateSession): Promise<Result<void, SessionRefusal>> {
  const { provider, modelId, workspace } = request;
  if ((provider === undefined) !== (modelId === undefined)) {
    return refuse("invalid_request", "provider and modelId go together");
  }
  if (provider !== undefined && modelId !== undefined && shared.models.find(provider, modelId) === undefined) {
    return refuse("unknown_model", `there is no model ${provider}/${modelId}`);
  }
  if (request.allowOutsideWorkspace === true && !shared.allowOutside) {
    return refuse("not_allowed", "this server does not permit allowOutsideWorkspace");
  }
  if (workspace !== undefined && !(isAbsolute(workspace) && (await isDirectory(workspace)))) {
    return refuse("workspace_not_found", "workspace: must be the absolute path of an existing directory");
  }
  return ok(undefined);
}

function recordOf(
  shared: SessionProcess,
  request: CreateSession,
  owner: Owner,
  parentSessionId: string | undefined,
): SessionRecord {
  const now = shared.clock.now();
  const sessionId = sessionIdAt(now, shared.newId());
  const { provider, modelId } = shared.models.defaultModel;
  const at = new Date(now).toISOString();
  return {
    sessionId,
    owner,
    provider: request.provider ?? provider,
    modelId: request.modelId ?? modelId,
    workspace: request.workspace ?? join(shared.workspacesFolder, sessionId),
    ownsWorkspace: request.workspace === undefined,
    approvalMode: request.approvalMode ?? "always-ask",
    thinkingLevel: request.thinkingLevel ?? "default",
    title: request.title ?? null,
    ...(request.maxTurns === undefined ? {} : { maxTurns: request.maxTurns }),
    ...(request.tools === undefined ? {} : { tools: request.tools }),
    ...(request.allowOutsideWorkspace === undefined ? {} : { allowOutsideWorkspace: request.allowOutsideWorkspace }),
    ...(parentSessionId === undefined ? {} : { parentSessionId }),
    createdAt: at,
    lastActiveAt: at,
    archived: false,
    epoch: 0,
    usage: emptyTokenCounts(),
  };
}

function metaLine(
  shared: SessionProcess,
  request: CreateSession,
  record: SessionRecord,
): Result<string, SessionRefusal> {
  const tools = [...environmentOf(shared, record).definitions()];
  const isBuiltIn = (name: string) => !name.startsWith(MCP_PREFIX) && tools.some((tool) => tool.name === name);
  const unknown = request.tools?.filter((name) => !isBuiltIn(name)) ?? [];
  if (unknown.length > 0) return refuse("invalid_request", `tools: there is no tool ${unknown.join(", ")}`);
  // Those of MCP servers may be others in a later context, which the prompt outlives.
  const names = tools.map((tool) => tool.name).filter((name) => !name.startsWith(MCP_PREFIX));
  const meta = sessionMeta(record.createdAt, {
    session_id: record.sessionId,
    provider: record.provider,
    model_id: record.modelId,
    model_context_window: shared.models.find(record.provider, record.modelId)?.spec.contextWindow ?? 0,
    system_prompt: request.systemPrompt ?? shared.systemPrompt ?? defaultSystemPrompt(record.workspace, names),
    tools,
    thinking_level: record.thinkingLevel,
    agent_state: shared.traces.folder(record.sessionId),
    workspace: record.workspace,
  });
  return ok(toLine(meta));
}

/** Makes a temporary Workspace, once something of its Session is on the disk: it would be nobody's after a crash. */
export const makeWorkspace = (path: string): Promise<void> =>
  onDisk("write_failed", "a temporary Workspace could not be made", () => makeFolder(path));

/** Takes back the temporary Workspace of a Session that did not come about. Never rejects. */
export async function dropWorkspace(
  { log }: Pick<SessionProcess, "log">,
  { workspace, ownsWorkspace }: Pick<SessionRecord, "workspace" | "ownsWorkspace">,
): Promise<void> {
  if (!ownsWorkspace) return;
  await rm(workspace, { recursive: true, force: true }).catch((error) =>
    log.warn({ err: error, workspace }, "the Workspace of a Session that did not come about stays"),
  );
}

/** `session-2026-07-18-03-10-22-a1b2c3d4`, the time in UTC. */
export function sessionIdAt(now: number, unique: string): string {
  const stamp = new Date(now).toISOString().slice(0, 19).replace(/[T:]/g, "-");
  return `session-${stamp}-${unique.replaceAll("-", "").slice(0, 8)}`;
}
