// What a person does with a Session. Each action says by itself what it could not do.

import {
  type Approval,
  type CreateSession,
  OmnidError,
  type PatchSession,
  type Prompt,
  type QueueItem,
  type Session,
} from "../client/index.js";
import { attempt, BASE, background, client, token } from "./connect.js";
import { addToDraft, draftIsFor, draftIsForNext, dropDraft, forgetDraft, promptKey, wasOfGone } from "./drafts.js";
import { takeHostEvent } from "./list.js";
import { givenName, nameFrom, nameOf } from "./names.js";
import { promptOf, writtenOf } from "./prompts.js";
import { promptAt, type SaidAgain } from "./said.js";
import * as state from "./state.js";
import { refreshQueue, select } from "./watch.js";

export function open(id: string | null): void {
  state.isDrawerOpen.value = false;
  if (id === null) history.pushState(null, "", location.pathname + location.search);
  else location.hash = id;
  select(id);
}

/** How long the stream may take to tell of a Task: one that is over by then may never be told of. */
const TOLD_WITHIN_MS = 3_000;
const SEND_TRIES = 3;

/** Sends what was written. It stays in the box until the server has it. @returns whether it has */
export async function submit(): Promise<boolean> {
  const written = { text: state.draft.value, files: state.attachments.value };
  const input = promptOf(written);
  if (input === undefined || state.sending.value !== null) return false;
  if (wasOfGone()) {
    state.error.value =
      "The Session that this was written for is not there any more. Send it again to begin a new one.";
    return false;
  }
  const mine: state.Sending = { sessionId: state.selectedId.value };
  state.sending.value = mine;
  const key = promptKey();
  const isDone = await attempt(() => retried(() => submitOnce(mine, input, key)));
  if (isDone) dropDraft(mine.sessionId, written);
  const sent = () => {
    if (state.sending.value === mine) state.sending.value = null;
  };
  const { taskId, ended } = state.view.value?.task ?? {};
  if (!isDone || [taskId, ended?.taskId].includes(mine.taskId) || state.isBusy.value) sent();
  else setTimeout(sent, TOLD_WITHIN_MS);
  return isDone;
}

async function submitOnce(mine: state.Sending, input: Prompt, key: string): Promise<void> {
  const whenBusy = state.isBusy.value ? state.whenBusy.value : "queue";
  mine.sessionId ??= await makeSession(mine, input, key);
  const id = mine.sessionId;
  const session = client.session(id);
  const accepted = await session.submit({ input, whenBusy }, { idempotencyKey: key }).catch(async (cause: unknown) => {
    if (mine.isNew && isRefusal(cause)) await unmake(mine, id);
    throw cause;
  });
  mine.taskId = accepted.taskId;
  if (accepted.steerId !== undefined || accepted.queued > 0) refreshQueue();
  const known = state.sessions.value.find(({ sessionId }) => sessionId === id) ?? state.view.value?.session;
  if (known?.sessionId !== id || (known.title ?? "") !== "") return;
  const title = givenName(known) || titleOf(input);
  // A name is a nicety: the prompt has been taken whatever becomes of it.
  if (title !== "") void session.update({ title }).catch(() => {});
}

/** The Session for a first prompt. Whoever has gone elsewhere meanwhile stays there. */
async function makeSession(mine: state.Sending, input: Prompt, key: string): Promise<string> {
  const title = titleOf(input);
  const body = { ...newSession(), ...(title === "" ? {} : { title }) };
  const session = await client.sessions.create(body, { idempotencyKey: `${key}-session` });
  mine.isNew = true;
  takeHostEvent({ type: "session_created", session });
  if (state.selectedId.value === null) {
    draftIsFor(session.sessionId);
    mine.sessionId = session.sessionId;
    open(session.sessionId);
  }
  return session.sessionId;
}

/** Takes back a Session whose first prompt was refused, if nobody has said anything in it; the prompt stays written. */
async function unmake(mine: state.Sending, id: string): Promise<void> {
  try {
    const { messages } = await client.session(id).messages({ limit: 2 });
    if (messages.length > 1) return;
    if (state.selectedId.value === id) {
      history.replaceState(null, "", location.pathname + location.search);
      select(null);
    }
    draftIsForNext(id);
    mine.sessionId = null;
    await client.session(id).delete();
    takeHostEvent({ type: "session_deleted", sessionId: id });
  } catch {
    // It stays in the list, empty; why the prompt was refused is what is said.
  }
}

const titleOf = (input: Prompt): string =>
  nameFrom(typeof input === "string" ? input : (input.find((part) => part.type === "text")?.text ?? ""));

function newSession(): CreateSession {
  const { model, approvalMode, thinkingLevel, workspace } = state.choices.value;
  const chosen = state.models.value?.models.find((each) => state.modelKey(each) === model);
  return {
    ...(chosen === undefined ? {} : { provider: chosen.provider, modelId: chosen.modelId }),
    approvalMode,
    thinkingLevel,
    ...(workspace.trim() === "" ? {} : { workspace: workspace.trim() }),
  };
}

/** Tries again only where it is unknown whether the server has it; under the same key it runs once. */
async function retried<T>(step: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await step();
    } catch (cause) {
      if (isRefusal(cause) || tries === SEND_TRIES) throw cause;
      await new Promise((resolve) => setTimeout(resolve, 400 * tries));
    }
  }
}

/** The server has said that it did not do it; otherwise it may have. */
const isRefusal = (cause: unknown): boolean =>
  !(cause instanceof OmnidError) || (cause.code !== "network" && ![502, 504].includes(cause.status));

const own = () => client.session(state.selectedId.value ?? "");

export const stop = () => attempt(() => own().abort());
export const compact = () => attempt(() => own().compact());
export const retryNow = () => attempt(() => own().retryNow());

export const decide = (approval: Approval, decision: "allow" | "deny", reason: string): Promise<boolean> =>
  attempt(() => client.decide(approval, decision === "allow" || reason === "" ? { decision } : { decision, reason }));

export const update = (id: string, change: PatchSession): Promise<boolean> =>
  attempt(async () => {
    takeHostEvent({ type: "session_updated", session: await client.session(id).update(change) });
  });

export const remove = (session: Session): Promise<boolean> =>
  attempt(async () => {
    const { sessionId } = session;
    await client.session(sessionId).delete();
    takeHostEvent({ type: "session_deleted", sessionId });
    if (state.selectedId.value === sessionId) open(null);
    forgetDraft(sessionId);
  });

/** Takes back what waits: it goes into its Session's box, behind what is there. */
export const recall = (item: QueueItem): Promise<boolean> =>
  attempt(async () => {
    const of = state.selectedId.value;
    try {
      const { input } = await own().recall(item.itemId);
      addToDraft(of, writtenOf(input));
    } finally {
      refreshQueue();
    }
  });

/** A fork that ends before a Prompt, with that Prompt in its box: to be changed, and sent again with all that went along. */
export const askAgain = (ordinal: number): Promise<boolean> => {
  const shown = state.view.value;
  return fork(ordinal, shown === null ? {} : { again: promptAt(ordinal + 1, shown) });
};

/** A new Session with the history up to a record. `again` is what it may go on with. */
export const fork = (ordinal: number, more: { model?: string; again?: SaidAgain } = {}): Promise<boolean> =>
  attempt(async () => {
    const model = state.models.value?.models.find((each) => state.modelKey(each) === more.model);
    const chosen = model === undefined ? {} : { provider: model.provider, modelId: model.modelId };
    const named = state.current.value === null ? "" : givenName(state.current.value);
    const session = await own().fork({ ordinal, ...chosen });
    takeHostEvent({ type: "session_created", session });
    open(session.sessionId);
    const { input = [], left = [] } = more.again ?? {};
    addToDraft(session.sessionId, writtenOf([...input]));
    if (left.length > 0) state.error.value = `Not all of that prompt can be sent again. Left out: ${left.join(", ")}.`;
    // So that the two are told apart in the list; it is there already, whatever becomes of its name.
    const title = `${named || nameOf(session)} (fork)`;
    await client
      .session(session.sessionId)
      .update({ title })
      .catch(() => {});
  });

/** The Trace as a file. Without a token the browser streams it to the disk by itself. */
export const downloadTrace = (session: Session): Promise<boolean> =>
  attempt(async () => {
    const { sessionId } = session;
    if (token() === "")
      return save(`${BASE}/api/sessions/${encodeURIComponent(sessionId)}/trace`, `${sessionId}.jsonl`);
    const blob = await new Response(await client.session(sessionId).trace()).blob();
    const url = URL.createObjectURL(blob);
    save(url, `${sessionId}.jsonl`);
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  });

function save(url: string, name: string): void {
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
}

/** A Session of a downloaded Trace. */
export const importTrace = (file: File): Promise<boolean> =>
  attempt(async () => {
    const session = await client.sessions.import(file);
    takeHostEvent({ type: "session_created", session });
    open(session.sessionId);
  });

export const loadModels = (): Promise<boolean> =>
  background(async () => {
    const list = await client.models();
    state.models.value = list;
    if (state.choices.value.model === "") {
      state.choices.value = { ...state.choices.value, model: state.modelKey(list.defaultModel) };
    }
  });
