// What a transcript says of what was there before it began.

import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { Terminal } from "../../src/cli/terminal.js";
import { Transcript } from "../../src/cli/transcript.js";
import { Unseen } from "../../src/cli/unseen.js";
import { emptyView, reduceView, slotOf, type View } from "../../src/client/index.js";
import * as make from "../../src/protocol/builders.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { AT, callOf, from } from "../support/messages.js";

const CHILD = "session-child";
const records = (...messages: OmniMessage[]) => messages.map((message, ordinal) => ({ ...message, ordinal }));

/** A Session in mid-Task whose one call was made, and of which a child is known by the number of its records. */
function opened(children: Record<string, number> = {}): View {
  const messages = records(make.userText(AT, "list"), callOf("call_1"));
  const page = { messages, cursor: "1-2", children };
  const task = { state: "running" as const, queued: 0, pendingApprovals: 0, records: 2 };
  return {
    ...reduceView(emptyView("session-1"), { type: "history", page }),
    connection: { status: "live", resynced: false },
    task,
  };
}

function transcriptOf(view: View) {
  let text = "";
  const stream = new Writable({
    write: (chunk, _, done) => {
      text += chunk;
      done();
    },
  });
  const seen = Object.assign(stream, { isTTY: true, columns: 80 });
  const terminal = new Terminal({ stdout: seen, stderr: seen, env: { NO_COLOR: "1" } });
  const unseen = new Unseen();
  unseen.skip(view);
  return { transcript: new Transcript({ terminal, unseen, now: () => 0, withPrompts: false }), said: () => text };
}

test("the status names a tool whose call was made before anything was shown, whether its output comes or is held back", () => {
  const view = opened();
  const slot = slotOf({ type: "partial_tool_call_output", toolCallId: "call_1" });
  const { transcript, said } = transcriptOf(view);
  transcript.show({ ...view, progress: { [slot]: { bytes: 9, tail: "first\nlast" } } });
  expect(said()).toContain("exec_command is running: last");
});

test("a child's records that were there before are not shown when they have been read, what comes later is", () => {
  const view = opened({ [CHILD]: 2 });
  const { transcript, said } = transcriptOf(view);
  transcript.show(view);
  const old = records(make.userText(AT, "look"), make.assistantText(AT, "of old"));
  const read = reduceView(view, { type: "child_records", sessionId: CHILD, records: old });
  transcript.show(read);
  const [message] = from(CHILD, [make.assistantText(AT, "of now")]) as [OmniMessage];
  transcript.show(reduceView(read, { type: "message", id: "1-3", message }));
  expect(said()).toContain("of now");
  expect(said()).not.toContain("of old");
});
