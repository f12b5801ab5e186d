// A disk that refuses the output of a call, and works again a moment later.

import { expect, test } from "vitest";
import { isPayload } from "../../src/protocol/guards.js";
import { diskFs, type TraceFile } from "../../src/trace/trace-fs.js";
import { scriptedModel } from "../support/engine.js";
import { ended, hostOn, lawfulRecordsOf, listReader, made } from "../support/sessions.js";

/** A disk that refuses what holds `text`. */
function refusing(text: string) {
  const wrapped = async (opened: Promise<TraceFile>): Promise<TraceFile> => {
    const file = await opened;
    const write = async (bytes: Uint8Array) => {
      if (Buffer.from(bytes).includes(text)) throw Object.assign(new Error("full"), { code: "ENOSPC" });
      return file.write(bytes);
    };
    return { ...file, write };
  };
  return {
    ...diskFs,
    openToAppend: (path: string) => wrapped(diskFs.openToAppend(path)),
    create: (path: string) => wrapped(diskFs.create(path)),
  };
}

test("an output that is refused while another call is asked about ends the Task at once, and nobody is said to have aborted it", async () => {
  const calls = ["a", "b", "c"].map((id) => ({
    call: "exec_command",
    id,
    args: JSON.stringify({ cmd: id === "b" ? "echo said-by-b; exit 3" : "echo x" }),
  }));
  const model = scriptedModel([{ steps: calls }, { steps: [{ say: "well" }] }]);
  const host = await hostOn({ model, fs: refusing('"exit_code":3') });
  const session = await made(host.create({}, null));
  const reader = listReader();
  session.follow(reader, {});
  await made(session.submit("go", {}));
  for (const id of ["a", "b"]) {
    const isAsked = ({ data }: { data: Record<string, unknown> }) =>
      data.type === "approval_request" && JSON.stringify(data).includes(`"tool_call_id":"${id}"`);
    await reader.until(isAsked);
    await made(session.decide(id, { decision: "allow" }));
    if (id === "a") await reader.until(({ data }) => JSON.stringify(data).includes('"exit_code":0'));
  }
  await reader.until(ended);
  expect(session.view()).toMatchObject({ state: "idle", pendingApprovals: 0 });
  expect(reader.events.find(ended)?.data).toMatchObject({ ended: { status: "failed", error: { kind: "storage" } } });
  expect(await session.decide("c", { decision: "allow" })).toMatchObject({ ok: false });

  await made(session.submit("go on", {}));
  await session.settled();
  const outputs = (await lawfulRecordsOf(session)).filter((record) => isPayload(record, "tool_call_output"));
  expect(outputs).toMatchObject([
    { payload: { tool_call_id: "a", exit_code: 0 } },
    {
      payload: {
        tool_call_id: "b",
        stop_reason: "failed",
        output: expect.stringMatching(/said-by-b\n.*may have been/),
      },
    },
    {
      payload: {
        tool_call_id: "c",
        stop_reason: "failed",
        output: expect.stringContaining("before this call was run"),
      },
    },
  ]);
  expect(JSON.stringify(outputs)).not.toContain("aborted");
});
