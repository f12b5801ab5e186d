// Runs one Task and prints the conversation, with the typed client. Node 20 or newer, and the
// package of this repository: npm install /path/to/omnid
//
//   OMNID_URL=http://127.0.0.1:8420 OMNID_TOKEN=… node node-client.mjs "/run date"

import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline/promises";
import { createClient, OmnidError } from "omnid/client";

const client = createClient({
  baseUrl: process.env.OMNID_URL ?? "http://127.0.0.1:8420",
  token: process.env.OMNID_TOKEN,
});
let terminal; // open while a question is

const { sessionId } = await client.sessions.create();
const session = client.session(sessionId);
await session.submit(process.argv[2] ?? "/run date", { idempotencyKey: randomUUID() });

/** Asks the person, and does not hold up the stream meanwhile. */
async function ask(approval) {
  const { name, arguments: text } = approval.toolCall.payload;
  terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question(`\nAllow ${name} ${text}? [y/N] `);
  terminal.close();
  try {
    await client.decide(approval, /^y/i.test(answer) ? "allow" : "deny");
  } catch (error) {
    // Somebody else was faster, or it is over: the view says what came of it.
    if (!(error instanceof OmnidError && /^approval_/.test(error.code))) throw error;
  }
}

// The client reconnects, resumes, reads the history again where it must: `view` is never wrong, at most a little old.
const following = session.follow();
const asked = new Set();
for await (const { view, ...step } of following) {
  if (step.type === "message" && step.message.payload.type === "partial_text") {
    process.stderr.write(step.message.payload.text);
  }
  for (const approval of view.approvals) {
    if (!asked.has(approval)) void ask(approval);
    asked.add(approval);
  }
  if (view.task?.state === "idle" && view.task.queued === 0 && view.gap === null && view.stale === null) break;
}
const { messages } = following.view;
following.close();
terminal?.close(); // somebody else may have answered it

for (const { message } of messages) {
  const { payload } = message;
  if (payload.type === "text") console.log(`${payload.role}: ${payload.text}`);
  if (payload.type === "thinking") console.log(`thinking: ${payload.thinking}`);
  if (payload.type === "tool_call") console.log(`call: ${payload.name} ${payload.arguments}`);
  if (payload.type === "approval_decision") console.log(`decision: ${payload.decision}`);
  if (payload.type === "tool_call_output") console.log(`output: ${payload.output}`);
}
