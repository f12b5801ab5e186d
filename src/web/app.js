// @ts-check
// Puts the page together: which Session is looked at, and what each part shows of it.

import { connectApi, inWords } from "./api.js";
import { approvalPanel } from "./approvals.js";
import { composer, newKey } from "./composer.js";
import { deleteDialog, pickers, tokenDialog } from "./controls.js";
import { itemList } from "./conversation.js";
import { announce, byId, setText } from "./dom.js";
import { follow } from "./follow.js";
import { itemsOf } from "./items.js";
import { scroller } from "./scroller.js";
import { followList } from "./session-list.js";
import { drawer, nameOf, sidebar } from "./sidebar.js";
import { activityOf, linkText, usageText } from "./standing.js";
import { emptyView } from "./view.js";

/** @import { Following } from "./follow.js" */
/** @import { LinkState, Session } from "./types.d.ts" */

const api = connectApi(tokenDialog());

/** @type {Session[]} */
let sessions = [];
/** @type {string | null} */
let selected = null;
/** @type {Following | null} */
let following = null;
let view = emptyView();
/** @type {LinkState | null} */
let link = null;
let isDrawing = false;
/**
 * The prompt that is on its way: until the server has it, and then until the stream tells of its Task. "Ready" would be
 * wrong meanwhile.
 * @type {{ taskId?: string } | null}
 */
let sending = null;

const closeDrawer = drawer();
const showSessions = sidebar((id) => {
  closeDrawer();
  location.hash = id;
});
const showItems = itemList(byId("items"));
const scrolling = scroller();
const prompt = composer(submit, stop, showError);
const pick = pickers(api, showError, () => selected, prompt.fill);
const showApprovals = approvalPanel(async (approval, decision, reason) => {
  const { sessionId, toolCall } = approval;
  const path = `/sessions/${encodeURIComponent(sessionId)}/approvals/${encodeURIComponent(toolCall.payload.tool_call_id ?? "")}`;
  showError("");
  try {
    await api.call("POST", path, { decision, ...(reason === "" || decision === "allow" ? {} : { reason }) });
  } catch (error) {
    showError(inWords(error));
    throw error;
  }
});

/** @param {string} text */
function showError(text) {
  setText(byId("error"), text);
  byId("error").hidden = text === "";
}

/** @param {string | null} id */
function select(id) {
  if (id === selected) return;
  following?.close();
  selected = id;
  view = emptyView();
  link = null;
  showError("");
  scrolling.toEnd();
  following =
    id === null
      ? null
      : follow(
          id,
          api,
          (next) => {
            const wasBusy = view.task !== null && view.task.state !== "idle";
            view = next;
            const { taskId, ended } = next.task ?? {};
            if (sending?.taskId !== undefined && [taskId, ended?.taskId].includes(sending.taskId)) sending = null;
            if (wasBusy && next.task?.state === "idle") announce("Finished");
            draw();
          },
          (next) => {
            link = next;
            if (next.kind === "gone") {
              if (location.hash === `#${selected}`) location.hash = "";
              showError("This Session is not there any more.");
            }
            draw();
          },
        );
  draw();
}

/** @returns {Session | undefined} */
function current() {
  const listed = sessions.find(({ sessionId }) => sessionId === selected);
  // Both are told of changes; the list also of those that no stream carries.
  return listed ?? view.session ?? undefined;
}

/** Once a frame at most, and also while the tab is hidden. */
function draw() {
  if (isDrawing) return;
  isDrawing = true;
  const now = () => {
    isDrawing = false;
    render();
  };
  if (document.visibilityState === "visible") requestAnimationFrame(now);
  else setTimeout(now, 250);
}

function render() {
  const session = current();
  showSessions(sessions, selected);
  byId("welcome").hidden = selected !== null;
  byId("session-tools").hidden = session === undefined;
  setText(byId("title"), selected === null ? "New session" : session === undefined ? "Session" : nameOf(session));
  setText(
    byId("subtitle"),
    session === undefined ? "" : `${session.provider}/${session.modelId} · ${session.workspace}`,
  );
  byId("subtitle").title = session?.workspace ?? "";
  if (session !== undefined) pick.showMode(session.approvalMode);
  byId("earlier").hidden = view.nextBefore === null;
  scrolling.keeping(() => showItems(selected === null ? [] : itemsOf(view)));
  showApprovals(selected === null ? [] : view.approvals, selected ?? "");
  const isBusy = view.task !== null && view.task.state !== "idle";
  prompt.setBusy(isBusy);
  showStanding();
  const waiting = sessions.reduce((sum, each) => sum + each.pendingApprovals, 0);
  document.title = `${waiting > 0 ? `(${waiting}) ` : ""}${session === undefined ? "omnid" : `${nameOf(session)} – omnid`}`;
}

function showStanding() {
  const shown = link === null ? null : linkText(link, Date.now());
  const node = byId("link");
  node.hidden = shown === null;
  byId("retry-now").hidden = byId("link-why").hidden = link?.kind !== "reconnecting";
  if (shown !== null) {
    setText(node, shown.text);
    node.className = shown.tone;
    node.title = shown.more;
    setText(byId("link-why"), `${shown.more} This is how it stood.`);
  }
  const isIdle = view.task === null || view.task.state === "idle";
  const known = selected === null ? { text: "", tone: "" } : activityOf(view, Date.now());
  const activity = selected !== null && sending !== null && isIdle ? { text: "Sending", tone: "busy" } : known;
  setText(byId("activity"), activity.text);
  byId("activity").className = activity.tone;
  setText(byId("usage"), usageText(view.usage ?? current()?.usage ?? null, current()?.usage.costUsd));
}

/** How long the stream may take to tell of a Task: one that is over by then may never be told of. */
const TOLD_WITHIN_MS = 3_000;

/** @param {string} input @param {string} key */
async function submit(input, key) {
  /** @type {{ taskId?: string }} */
  const mine = {};
  sending = mine;
  const sent = () => {
    if (sending === mine) sending = null;
    draw();
  };
  try {
    const { taskId } = await submitPrompt(input, key);
    mine.taskId = taskId;
    if ([view.task?.taskId, view.task?.ended?.taskId].includes(taskId)) sent();
    else setTimeout(sent, TOLD_WITHIN_MS);
  } catch (error) {
    sent();
    throw error;
  }
}

/** @param {string} input @param {string} key @returns {Promise<{ taskId: string }>} */
async function submitPrompt(input, key) {
  const isFirst = selected === null || !view.entries.some(({ message }) => message.payload.role === "user");
  if (selected === null) {
    /** @type {Session} */
    const made = await api.call("POST", "/sessions", pick.forNewSession(), { "idempotency-key": `${key}-session` });
    sessions = [made, ...sessions.filter(({ sessionId }) => sessionId !== made.sessionId)];
    location.hash = made.sessionId;
    select(made.sessionId);
  }
  const path = `/sessions/${encodeURIComponent(selected ?? "")}`;
  const accepted = await api.call("POST", `${path}/tasks`, { input }, { "idempotency-key": key || newKey() });
  scrolling.toEnd();
  if (!isFirst || current()?.title) return accepted;
  const title = input.trim().split("\n")[0]?.slice(0, 60) ?? "";
  // A name is a nicety: the prompt has been taken whatever becomes of it.
  await api.call("PATCH", path, { title }).catch(() => {});
  return accepted;
}

function stop() {
  if (selected === null) return;
  api.call("POST", `/sessions/${encodeURIComponent(selected)}/abort`).catch((error) => showError(inWords(error)));
}

byId("new-session").addEventListener("click", () => {
  closeDrawer();
  location.hash = "";
  select(null);
  prompt.focus();
});
byId("retry-now").addEventListener("click", () => following?.retryNow());
byId("earlier").addEventListener("click", () => {
  following?.loadEarlier().catch((error) => showError(inWords(error)));
});
deleteDialog(async () => {
  const id = selected;
  if (id === null) return;
  try {
    await api.call("DELETE", `/sessions/${encodeURIComponent(id)}`);
    sessions = sessions.filter(({ sessionId }) => sessionId !== id);
    location.hash = "";
    select(null);
  } catch (error) {
    showError(inWords(error));
  }
});

const fromHash = () => select(location.hash.length > 1 ? decodeURIComponent(location.hash.slice(1)) : null);
addEventListener("hashchange", fromHash);
// Countdowns.
setInterval(() => {
  if (link?.kind === "reconnecting" || view.task?.retry !== undefined) showStanding();
}, 500);
fromHash();
draw();
void pick.load();
void followList(
  api,
  (next) => {
    sessions = next;
    draw();
  },
  (error) => showError(inWords(error)),
);
