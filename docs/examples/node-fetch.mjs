// Runs one Task and prints the conversation, over fetch alone. Node 20 or newer, and one package that reads event
// streams: npm install eventsource-parser
//
//   OMNID_URL=http://127.0.0.1:8420 OMNID_TOKEN=… node node-fetch.mjs "/run date"

import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline/promises";
import { setTimeout as pause } from "node:timers/promises";
import { createParser } from "eventsource-parser";

const API = `${process.env.OMNID_URL ?? "http://127.0.0.1:8420"}/api`;
const AUTH = process.env.OMNID_TOKEN ? { authorization: `Bearer ${process.env.OMNID_TOKEN}` } : {};
const SILENCE_MS = 60_000; // four heartbeats

let terminal; // open while a question is

/** One call. An answer that is not 2xx is thrown, with the server's own code for what is wrong. */
async function call(method, path, body, headers = {}, signal = AbortSignal.timeout(SILENCE_MS)) {
  const json = body === undefined ? {} : { "content-type": "application/json" };
  const response = await fetch(API + path, {
    method,
    headers: { ...AUTH, ...json, ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal,
  });
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({ error: { code: "http", message: response.statusText } }));
  throw Object.assign(new Error(`${error.code}: ${error.message}`), { status: response.status, code: error.code });
}

/** Tries again, a little later each time, what the network or a restarting server kept from happening. */
async function persistently(attempt) {
  for (let wait = 1000; ; wait = Math.min(2 * wait, 30_000)) {
    try {
      return await attempt();
    } catch (error) {
      if (error.status < 500 && error.status !== 429) throw error; // it would be refused again
      await pause(wait * (0.5 + Math.random() / 2));
    }
  }
}

// The key makes it safe to say the same thing twice: the second time starts nothing.
const once = (path, body) => {
  const key = { "idempotency-key": randomUUID() };
  return persistently(async () => (await call("POST", path, body, key)).json());
};

const { sessionId } = await once("/sessions", {});
const session = `/sessions/${sessionId}`;
await once(`${session}/tasks`, { input: process.argv[2] ?? "/run date" });

let records = [];
let cursor; // the place in the stream that `records` describes; undefined when it is not known

async function readHistory() {
  const { messages, live, ...page } = await (await call("GET", `${session}/messages`)).json();
  records = messages;
  cursor = page.cursor;
  for (const fragment of live?.fragments ?? []) paint(fragment);
}

/** Shows text as it is written. */
function paint({ payload, origin }) {
  if (payload.type === "partial_text" && !origin) process.stderr.write(payload.text);
}

/** Asks the person, and does not hold up the stream meanwhile. */
async function ask({ sessionId: asks, toolCall: { payload } }) {
  terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question(`\nAllow ${payload.name} ${payload.arguments}? [y/N] `);
  terminal.close();
  const decision = /^y/i.test(answer) ? "allow" : "deny";
  try {
    const path = `/sessions/${asks}/approvals/${payload.tool_call_id}`;
    await persistently(() => call("POST", path, { decision }));
  } catch (error) {
    // Somebody else was faster, or it is over: the stream says what came of it.
    if (error.code !== "approval_already_decided" && error.code !== "approval_not_found") throw error;
  }
}

const asked = new Set();

/** Takes one event. Returns "over" when nothing runs any more, "lost" when the history has to be read again. */
function take({ id, event, data }) {
  const value = JSON.parse(data);
  if (id) cursor = id;
  if (event !== "server_event") {
    if (value.payload.type?.startsWith("partial_")) paint(value);
    else if (!value.origin) records.push(value); // what has an origin is a child's
    return undefined;
  }
  switch (value.type) {
    case "task_state":
      // Some records are not on the stream, such as what another person said: their number tells.
      if (value.records !== records.length) return "lost";
      return value.state === "idle" && value.queued === 0 ? "over" : undefined;
    case "approval_request": {
      const call = `${value.sessionId} ${value.toolCall.payload.tool_call_id}`;
      if (!asked.has(call)) void ask(value);
      asked.add(call); // each connection begins with all that are open
      return undefined;
    }
    case "resync_required":
      return "lost";
  }
}

/** Follows one connection: to what `take` returns, or "cut". Throws when there was none. */
async function follow() {
  const connection = new AbortController();
  const giveUp = () => connection.abort(new Error("silent for too long"));
  let timer = setTimeout(giveUp, SILENCE_MS);
  const events = [];
  const parser = createParser({ onEvent: (event) => events.push(event) });
  const decoder = new TextDecoder();
  const headers = { accept: "text/event-stream", "last-event-id": cursor };
  try {
    const { body } = await call("GET", `${session}/stream`, undefined, headers, connection.signal);
    const reader = body.getReader();
    for (;;) {
      const { done, value } = await reader.read().catch(() => ({ done: true }));
      if (done) return "cut";
      clearTimeout(timer);
      timer = setTimeout(giveUp, SILENCE_MS);
      parser.feed(decoder.decode(value, { stream: true }));
      for (const event of events.splice(0)) {
        const end = take(event);
        if (end !== undefined) return end;
      }
    }
  } finally {
    clearTimeout(timer);
    connection.abort();
  }
}

let end = "lost";
while (end !== "over") {
  if (end === "cut") await pause(1000);
  if (end === "lost") await persistently(readHistory);
  end = await persistently(follow);
}
terminal?.close(); // somebody else may have answered it

for (const { payload } of records) {
  if (payload.type === "text") console.log(`${payload.role}: ${payload.text}`);
  if (payload.type === "thinking") console.log(`thinking: ${payload.thinking}`);
  if (payload.type === "tool_call") console.log(`call: ${payload.name} ${payload.arguments}`);
  if (payload.type === "approval_decision") console.log(`decision: ${payload.decision}`);
  if (payload.type === "tool_call_output") console.log(`output: ${payload.output}`);
}
