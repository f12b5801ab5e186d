// A Session as clients see it, from its record alone: how it is listed while it is not in memory.

import type { SessionRecord } from "./session-record.js";
import type { SessionView } from "./types.js";

export function recordView(record: SessionRecord): SessionView {
  return {
    sessionId: record.sessionId,
    provider: record.provider,
    modelId: record.modelId,
    workspace: record.workspace,
    approvalMode: record.approvalMode,
    thinkingLevel: record.thinkingLevel,
    title: record.title,
    state: "idle",
    createdAt: record.createdAt,
    lastActiveAt: record.lastActiveAt,
    archived: record.archived,
    pendingApprovals: 0,
    queued: record.queue?.filter(({ kind }) => kind === "task").length ?? 0,
    usage: record.usage,
    ...(record.parentSessionId === undefined ? {} : { parentSessionId: record.parentSessionId }),
  };
}
