// Sessions in memory, by the contract of src/session/types.ts, over a real Channel: what the HTTP layer is tried on
// without engine and disk. A prompt's text says what happens: `hold` runs until it is aborted, `ask` waits for a
// decision on call-1, anything else is answered at once.

import { existsSync } from "node:fs";
import { Readable } from "node:stream";
import { Channel } from "../../src/channel/channel.js";
import { HeartbeatWheel } from "../../src/channel/heartbeat.js";
import type { Sink } from "../../src/channel/subscription.js";
import type { Clock } from "../../src/clock.js";
import type { Config } from "../../src/config.js";
import { viewOf } from "../../src/model-registry.js";
import { approvalDecision, assistantText, sessionMeta, toolCall, userText } from "../../src/protocol/builders.js";
import { type OmniMessage, toLine } from "../../src/protocol/message.js";
import type { ToolCallPayload } from "../../src/protocol/payloads.js";
import { ok, type Result, refuse } from "../../src/result.js";
import type {
  ApprovalView,
  ClientDecision,
  CreateOptions,
  CreateSession,
  HistoryPage,
  HistoryQuery,
  HostedSession,
  ImportSource,
  Input,
  Owner,
  PatchSession,
  SessionHost,
  SessionRefusal,
  SessionView,
  TaskView,
} from "../../src/session/types.js";

export interface MemoryHostOptions {
  config: Config;
  clock: Clock;
  newId: () => string;
}

const ZERO = { cache_read: 0, cache_write: 0, output: 0, total: 0 };

export class MemoryHost implements SessionHost {
  draining = false;
  isReady = true;
  uploadedBytes = 0;
  /** When set, the next record cannot be written. */
  diskIsFull = false;
  /** Awaited by `submit` and `create` before they go on. */
  gate: Promise<void> = Promise.resolve();
  readonly sessions = new Map<string, MemorySession>();
  readonly #options: MemoryHostOptions;
  readonly #events = new Map<Owner, Channel>();
  readonly #wheel: HeartbeatWheel;

  constructor(options: MemoryHostOptions) {
    this.#options = options;
    this.#wheel = new HeartbeatWheel({ intervalMs: options.config.heartbeatMs, clock: options.clock });
  }

  async create(
    request: CreateSession,
    owner: Owner,
    options: CreateOptions = {},
  ): Promise<Result<HostedSession, SessionRefusal>> {
    await this.gate;
    const { config, clock, newId } = this.#options;
    const { provider, modelId } = { ...config.models.defaultModel, ...request };
    const model = config.models.find(provider, modelId);
    if (model === undefined) return refuse("unknown_model", `there is no model ${provider}/${modelId}`);
    if (request.workspace !== undefined && !existsSync(request.workspace)) {
      return refuse("workspace_not_found", "no such directory");
    }
    if (request.allowOutsideWorkspace && !config.allowOutside) return refuse("not_allowed", "not permitted");
    if (config.maxSessions !== undefined && this.sessions.size >= config.maxSessions) {
      return refuse("too_many_sessions", "the cap is reached");
    }
    const id = `session-2026-01-02-03-04-05-${newId().slice(0, 8)}`;
    await options.beforeRecorded?.(id);
    const view: SessionView = {
      sessionId: id,
      provider,
      modelId,
      workspace: request.workspace ?? `/tmp/${id}`,
      approvalMode: request.approvalMode ?? "always-ask",
      thinkingLevel: request.thinkingLevel ?? "default",
      title: request.title ?? null,
      state: "idle",
      createdAt: clock.iso(),
      lastActiveAt: clock.iso(),
      archived: false,
      pendingApprovals: 0,
      queued: 0,
      usage: ZERO,
    };
    const session = new MemorySession(view, owner, this, { ...this.#options, wheel: this.#wheel });
    this.sessions.set(id, session);
    this.announce(owner, { type: "session_created", session: session.view() });
    return ok(session);
  }

  async fork(): Promise<never> {
    throw new Error("Sessions in memory are not forked");
  }

  /** Takes the upload in and makes nothing of it. */
  async importTrace({ chunks }: ImportSource): Promise<Result<HostedSession, SessionRefusal>> {
    for await (const chunk of chunks) this.uploadedBytes += chunk.length;
    return refuse("invalid_request", "Sessions in memory are not imported");
  }

  async list(query: { limit: number; cursor?: string; archived: boolean; parent?: string }, owner: Owner) {
    const all = [...this.sessions.values()].filter((s) => s.owner === owner).map((s) => s.view());
    const wanted = all.filter((v) => (query.archived || !v.archived) && v.parentSessionId === query.parent).reverse();
    const from = query.cursor === undefined ? 0 : Number(query.cursor);
    if (!Number.isInteger(from)) return refuse("invalid_request", "cursor: not one of this list");
    const sessions = wanted.slice(from, from + query.limit);
    return ok(from + query.limit < wanted.length ? { sessions, nextCursor: String(from + query.limit) } : { sessions });
  }

  async use<T>(id: string, owner: Owner, work: (session: MemorySession | undefined) => T | Promise<T>): Promise<T> {
    return work(await this.find(id, owner));
  }

  hasRoomFor(): boolean {
    return true;
  }

  async find(id: string, owner: Owner): Promise<MemorySession | undefined> {
    const session = this.sessions.get(id);
    return session?.owner === owner ? session : undefined;
  }

  async remove(id: string, owner: Owner): Promise<boolean> {
    const session = await this.find(id, owner);
    if (session === undefined) return false;
    this.sessions.delete(id);
    session.channel.end();
    this.announce(owner, { type: "session_deleted", sessionId: id });
    return true;
  }

  models() {
    const { models, defaultModel } = this.#options.config.models;
    return { models: models.map(viewOf), defaultModel };
  }

  followEvents(sink: Sink, owner: Owner): void {
    let channel = this.#events.get(owner);
    if (channel === undefined) {
      channel = new Channel({ maxEvents: 100, maxBytes: 1_000_000, heartbeat: this.#wheel });
      this.#events.set(owner, channel);
    }
    channel.subscribe(sink, { snapshot: () => ({ events: [] }) });
  }

  announce(owner: Owner, event: object): void {
    this.#events.get(owner)?.announce(toLine(event));
  }

  async ready(): Promise<boolean> {
    return this.isReady && !this.draining;
  }

  /** Ends every stream, as a drain does. */
  endStreams(): void {
    for (const session of this.sessions.values()) session.channel.end(toLine({ type: "shutdown", retryMs: 1000 }));
    for (const channel of this.#events.values()) channel.end();
  }
}

export class MemorySession implements HostedSession {
  readonly owner: Owner;
  readonly channel: Channel;
  readonly #host: MemoryHost;
  readonly #options: MemoryHostOptions;
  readonly #records: string[] = [];
  readonly #tasks = new Map<string, TaskView>();
  readonly #decided = new Set<string>();
  #view: SessionView;
  #pending: OmniMessage<ToolCallPayload> | undefined;

  constructor(
    view: SessionView,
    owner: Owner,
    host: MemoryHost,
    options: MemoryHostOptions & { wheel: HeartbeatWheel },
  ) {
    this.#view = view;
    this.owner = owner;
    this.#host = host;
    this.#options = options;
    const { replayEvents, replayBytes } = options.config;
    this.channel = new Channel({ epoch: 7, maxEvents: replayEvents, maxBytes: replayBytes, heartbeat: options.wheel });
    const meta = {
      session_id: view.sessionId,
      provider: view.provider,
      model_id: view.modelId,
      model_context_window: 1000,
      system_prompt: "",
      tools: [],
      thinking_level: view.thinkingLevel,
      agent_state: "idle",
      workspace: view.workspace,
    };
    this.#records.push(toLine(sessionMeta(options.clock.iso(), meta)));
  }

  get id(): string {
    return this.#view.sessionId;
  }

  view(): SessionView {
    return { ...this.#view, pendingApprovals: this.#pending === undefined ? 0 : 1 };
  }

  async patch(change: PatchSession): Promise<Result<SessionView, SessionRefusal>> {
    this.#view = { ...this.#view, ...change };
    return ok(this.view());
  }

  async submit(input: Input, options: Parameters<HostedSession["submit"]>[1]): ReturnType<HostedSession["submit"]> {
    if (this.#view.state !== "idle") return refuse("task_in_progress", "a Task is running");
    const text =
      typeof input === "string" ? input : input.map((part) => (part.type === "text" ? part.text : "")).join("");
    const taskId = this.#options.newId();
    this.#view = { ...this.#view, state: "running" };
    const task: TaskView = { taskId, state: "running", startedAt: this.#options.clock.iso() };
    this.#tasks.set(taskId, task);
    await options.beforeRecorded?.({ taskId, queued: 0 });
    options.onAssigned?.({ taskId, queued: 0 });
    this.#announceState();
    await this.#host.gate;
    if (this.#host.diskIsFull) {
      this.#end(task, "failed", { kind: "storage", message: "the record could not be written" });
      return refuse("storage_failed", "the record could not be written");
    }
    this.#records.push(toLine(userText(this.#options.clock.iso(), text)));
    // The model answers in a turn of its own, as one at the end of a network would.
    if (text === "ask") setImmediate(() => this.#ask());
    else if (text !== "hold") setImmediate(() => this.#answer(text));
    return ok({ taskId, queued: 0 });
  }

  task(taskId: string): TaskView | undefined {
    return this.#tasks.get(taskId);
  }

  approvals(): ApprovalView[] {
    if (this.#pending === undefined) return [];
    return [{ sessionId: this.id, toolCall: this.#pending, requestedAt: this.#pending.timestamp }];
  }

  async decide(toolCallId: string, decision: ClientDecision): Promise<Result<void, SessionRefusal>> {
    if (this.#decided.has(toolCallId)) return refuse("approval_already_decided", "it was decided before");
    if (this.#pending?.payload.tool_call_id !== toolCallId) return refuse("approval_not_found", "no such approval");
    this.#pending = undefined;
    this.#decided.add(toolCallId);
    this.#say(
      approvalDecision(this.#options.clock.iso(), { ...decision, tool_call_id: toolCallId, decided_by: "user" }),
    );
    this.#answer(decision.decision);
    return ok(undefined);
  }

  async abort(): ReturnType<HostedSession["abort"]> {
    const task = this.#running();
    if (task === undefined) return ok(false);
    this.#pending = undefined;
    this.#end(task, "aborted");
    return ok(true);
  }

  async compact(): ReturnType<HostedSession["compact"]> {
    if (this.#running() !== undefined) return refuse("task_in_progress", "a Task is running");
    return this.#records.length > 1 ? ok(undefined) : refuse("nothing_to_compact", "nothing was said");
  }

  async steer(): ReturnType<HostedSession["steer"]> {
    const task = this.#running();
    return task === undefined ? refuse("not_running", "nothing is running") : ok({ steerId: "steer-1" });
  }

  holds(itemId: string): boolean {
    return this.#tasks.has(itemId);
  }

  queue(): [] {
    return [];
  }

  async recall(itemId: string): ReturnType<HostedSession["recall"]> {
    return refuse("not_pending", `nothing waits under ${itemId}`);
  }

  retryNow(): boolean {
    return false;
  }

  history(query: HistoryQuery): HistoryPage {
    const all = this.#records.map((json, ordinal) => ({ ordinal, json }));
    const within = all.filter((r) => r.ordinal < (query.before ?? all.length) && r.ordinal > (query.after ?? -1));
    const records = within.slice(query.limit === undefined ? 0 : -query.limit);
    const first = records[0]?.ordinal ?? 0;
    return {
      records: Readable.from([records]),
      cursor: this.channel.headId,
      ...(first > 0 && query.after === undefined && { nextBefore: first }),
    };
  }

  openTrace(): Readable {
    return Readable.from(this.#records.map((record) => `${record}\n`));
  }

  follow(sink: Sink, options: { lastEventId?: string; untilTask?: string }): void {
    const { lastEventId, untilTask } = options;
    this.channel.subscribe(sink, {
      ...(lastEventId !== undefined && { lastEventId }),
      ...(untilTask !== undefined && { endsAt: (tag) => tag === untilTask }),
      snapshot: () => {
        const task = untilTask === undefined ? undefined : this.#tasks.get(untilTask);
        const over = task?.state === "ended";
        const state = this.#state(over ? task : undefined);
        return { events: [state, ...this.approvals().map((a) => toLine({ type: "approval_request", ...a }))], over };
      },
    });
  }

  /** Records and publishes `count` messages whose lines are `bytes` long or a little more. */
  fill(count: number, bytes: number): void {
    const text = "x".repeat(bytes);
    for (let n = 0; n < count; n += 1) this.#say(assistantText(this.#options.clock.iso(), text));
  }

  say(text: string): void {
    this.#say(assistantText(this.#options.clock.iso(), text));
  }

  #running(): TaskView | undefined {
    return [...this.#tasks.values()].find((task) => task.state === "running");
  }

  #ask(): void {
    if (this.#running() === undefined) return;
    this.#pending = toolCall(this.#options.clock.iso(), {
      name: "write_file",
      arguments: "{}",
      tool_call_id: "call-1",
    });
    this.#say(this.#pending);
    this.#announceState();
    for (const approval of this.approvals()) this.channel.announce(toLine({ type: "approval_request", ...approval }));
  }

  #answer(text: string): void {
    const task = this.#running();
    if (task === undefined) return;
    this.#say(assistantText(this.#options.clock.iso(), text));
    this.#end(task, "completed");
  }

  #end(task: TaskView, status: NonNullable<TaskView["status"]>, error?: TaskView["error"]): void {
    Object.assign(task, { state: "ended", status, endedAt: this.#options.clock.iso(), ...(error && { error }) });
    this.#view = { ...this.#view, state: "idle" };
    this.channel.announce(this.#state(task), task.taskId);
  }

  #say(message: OmniMessage): void {
    const line = toLine(message);
    this.#records.push(line);
    this.channel.publish(line);
  }

  #announceState(): void {
    this.channel.announce(this.#state(undefined));
  }

  #state(ended: TaskView | undefined): string {
    const { state, queued } = this.#view;
    return toLine({
      type: "task_state",
      state,
      taskId: this.#running()?.taskId,
      queued,
      pendingApprovals: this.#pending === undefined ? 0 : 1,
      records: this.#records.length,
      ended: ended && { taskId: ended.taskId, status: ended.status, error: ended.error },
    });
  }
}
