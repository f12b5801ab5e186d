// What the page knows, as signals. Parts read them; only the actions write them.

import { computed, signal } from "@preact/signals";
import type { ApprovalMode, ChildView, Connection, ModelList, Session, ThinkingLevel, View } from "../client/index.js";

/** A file that goes with the next prompt. */
export interface Attachment {
  key: string;
  name: string;
  type: string;
  bytes: number;
  dataUrl: string;
}

export type Dialog =
  | { kind: "token"; isWrong: boolean; answer: (token: string, keep: boolean) => void }
  | { kind: "delete"; session: Session }
  | { kind: "rename"; session: Session }
  | { kind: "picture"; url: string }
  | { kind: "shortcuts" };

export interface Sending {
  /** Where it goes; null until its Session is made. */
  sessionId: string | null;
  /** That one was made for it. */
  isNew?: boolean;
  taskId?: string;
}

export type WhenBusy = "queue" | "steer" | "interrupt";
export type Theme = "auto" | "light" | "dark";

export const sessions = signal<readonly Session[]>([]);
/** Where the list goes on; null when all of it is there, undefined until it was read. */
export const moreSessions = signal<string | null | undefined>(undefined);
export const models = signal<ModelList | null>(null);

export const selectedId = signal<string | null>(null);
export const view = signal<View | null>(null);
/** Children of the Session that is looked at, by id, as their own histories have them. */
export const readChildren = signal<ReadonlyMap<string, ChildView>>(new Map());
/** The prompt that is on its way: until the server has it, and then until the stream tells of its Task. */
export const sending = signal<Sending | null>(null);

export const draft = signal("");
export const attachments = signal<readonly Attachment[]>([]);
/** What was chosen for a prompt while the model works, for each Session its own. */
export const chosenWhenBusy = signal<ReadonlyMap<string, WhenBusy>>(new Map());
export const whenBusy = computed<WhenBusy>(() => chosenWhenBusy.value.get(selectedId.value ?? "") ?? "queue");

/** What the next Session is made of; an empty model is the server's choice. */
export const choices = signal<{
  model: string;
  approvalMode: ApprovalMode;
  thinkingLevel: ThinkingLevel;
  workspace: string;
}>({ model: "", approvalMode: "always-ask", thinkingLevel: "default", workspace: "" });

export const error = signal("");
/** What a screen reader says next. */
export const announcement = signal("");
export const dialog = signal<Dialog | null>(null);
export const isDrawerOpen = signal(false);
export const isOnline = signal(true);
export const theme = signal<Theme>("auto");
/** Ticks while something counts down. */
export const now = signal(Date.now());

/** The Session that is looked at. The list is told of all changes, the stream also of Sessions that are not listed. */
export const current = computed<Session | null>(() => {
  const id = selectedId.value;
  if (id === null) return null;
  return sessions.value.find(({ sessionId }) => sessionId === id) ?? view.value?.session ?? null;
});

export const isBusy = computed(() => {
  const task = view.value?.task;
  return task !== null && task !== undefined && task.state !== "idle";
});

/** Whether the prompt that is on its way is of what is looked at. */
export const isSending = computed(() => sending.value !== null && sending.value.sessionId === selectedId.value);

export const connection = computed<Connection | null>(() => view.value?.connection ?? null);

/** A name for a model that is also a key. */
export const modelKey = (model: { provider: string; modelId: string }): string => `${model.provider}/${model.modelId}`;
