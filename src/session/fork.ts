// A Session made of another's history. The source is only read, record by record, and may go on or even be deleted
// meanwhile: what is copied was recorded before and never moves.
//
// Any record may be the last but one inside something that has not ended. So a fork may end with a Prompt that nothing
// has answered yet, or with the last output of a batch: the Session is idle there, and its next prompt goes to the model
// together with that input, as the source's next Request would have carried it.

import { Unfinished } from "../engine/unfinished.js";
import { emptyTokenCounts } from "../protocol/builders.js";
import { classify } from "../protocol/validate.js";
import { ok, type Result, refuse } from "../result.js";
import { rewritePayload } from "../trace/meta-rewrite.js";
import type { Trace } from "../trace/trace-store.js";
import { type Made, sessionIdAt } from "./create.js";
import type { SessionProcess } from "./process.js";
import { recordFile, type SessionRecord } from "./session-record.js";
import type { ForkSession, SessionRefusal } from "./types.js";

/** Nothing can end here: thrown through the store, which then leaves nothing. */
class NotCommitted extends Error {}

export interface ForkSource extends Made {
  /** Whether it was deleted meanwhile: then it is no fault that it cannot be read. */
  isGone(): boolean;
}

export async function forkSession(
  shared: SessionProcess,
  source: ForkSource,
  request: ForkSession,
): Promise<Result<Made, SessionRefusal>> {
  const { ordinal } = request;
  const { count } = source.trace;
  if (ordinal >= count) return refuse("invalid_request", `ordinal: the Session has ${count} records, from ordinal 0`);
  const record = recordOf(shared, source.record, request);
  if (!record.ok) return record;
  try {
    const records = copyOf(source.trace, ordinal, metaOf(shared, source.record, record.value));
    const trace = await shared.traces.create(record.value.sessionId, records, recordFile(record.value));
    return ok({ record: record.value, trace });
  } catch (error) {
    if (error instanceof NotCommitted) {
      return refuse("ordinal_not_committed", `the record at ordinal ${ordinal} is inside something that has not ended`);
    }
    if (!source.isGone()) {
      shared.log.error({ err: error, sessionId: source.record.sessionId }, "a Session could not be forked");
    }
    return refuse("storage_failed", "the Session could not be recorded");
  }
}

/** What a fork takes over. Not what the source's own Tasks, parent and readers have to do with. */
function recordOf(
  shared: SessionProcess,
  source: SessionRecord,
  { ordinal, provider = source.provider, modelId = source.modelId }: ForkSession,
): Result<SessionRecord, SessionRefusal> {
  const isAnother = provider !== source.provider || modelId !== source.modelId;
  if (isAnother && shared.models.find(provider, modelId) === undefined) {
    return refuse("unknown_model", `there is no model ${provider}/${modelId}`);
  }
  const now = shared.clock.now();
  const at = new Date(now).toISOString();
  const { owner, workspace, ownsWorkspace, approvalMode, thinkingLevel, title } = source;
  const { maxTurns, tools, systemPrompt, allowOutsideWorkspace } = source;
  return ok({
    sessionId: sessionIdAt(now, shared.newId()),
    ...{ owner, provider, modelId, workspace, ownsWorkspace, approvalMode, thinkingLevel, title },
    ...(maxTurns === undefined ? {} : { maxTurns }),
    ...(tools === undefined ? {} : { tools }),
    ...(systemPrompt === undefined ? {} : { systemPrompt }),
    ...(allowOutsideWorkspace === undefined ? {} : { allowOutsideWorkspace }),
    createdAt: at,
    lastActiveAt: at,
    archived: false,
    restsAt: ordinal + 1,
    epoch: 0,
    usage: emptyTokenCounts(),
  });
}

/** What every `session_meta` of the fork says differently. */
function metaOf(shared: SessionProcess, source: SessionRecord, record: SessionRecord): Record<string, unknown> {
  const own = { session_id: record.sessionId, agent_state: shared.traces.folder(record.sessionId) };
  const { provider, modelId } = record;
  if (provider === source.provider && modelId === source.modelId) return own;
  const contextWindow = shared.models.find(provider, modelId)?.spec.contextWindow ?? 0;
  return { ...own, provider, model_id: modelId, model_context_window: contextWindow };
}

async function* copyOf(
  trace: Trace,
  ordinal: number,
  meta: Readonly<Record<string, unknown>>,
): AsyncGenerator<string[], void, void> {
  const unfinished = new Unfinished();
  for await (const batch of trace.read({ from: 0, to: ordinal + 1 })) {
    yield batch.map(({ json, message }) => {
      // A damaged record is copied where it stands, and counts for nothing, as in the source.
      if (!("problems" in classify(message))) unfinished.push(message);
      return message.type === "session_meta" ? rewritePayload(json, meta) : json;
    });
  }
  if (unfinished.isMidway) throw new NotCommitted();
}
