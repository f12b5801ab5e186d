// Many clients at one door: one wins, the others are told so, and the record shows one of everything.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { atFileEnd } from "../support/at-file-end.js";
import { type Server, startOmnid } from "../support/server.js";
import { api, asked, at, expectLawful, follow, history, makeSession, payloads, prompt, untilIdle } from "./api.js";

let server: Server;
beforeAll(async () => {
  server = await startOmnid({ atEnd: atFileEnd });
});

const times = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));

describe("prompts", () => {
  test("D1 D5: of 50 prompts at once one starts, 49 are told task_in_progress, and nothing of those is stored", async () => {
    const id = await makeSession(server);
    const reader = await follow(server, id);
    const answers = await Promise.all(
      times(50, (index) => api(server, "POST", at(id, "/tasks"), { input: `/run echo ${index}` })),
    );
    const started = answers.filter(({ status }) => status === 202);
    expect(started).toHaveLength(1);
    for (const { status, body } of answers)
      if (status !== 202) expect([status, body.error.code]).toEqual([409, "task_in_progress"]);
    const callId = await asked(reader);
    await api(server, "POST", at(id, `/approvals/${callId}`), { decision: "allow" });
    await reader.untilEnded(started[0]?.body.taskId);
    const records = await expectLawful(server, id, reader.messages);
    expect(payloads(records, "text").filter(({ role }) => role === "user")).toHaveLength(1);
    expect(payloads(records, "abort")).toEqual([]);
  });

  test("D1: wave upon wave, each prompt that was accepted is in the Trace, in order, with its answer", async () => {
    const id = await makeSession(server);
    const reader = await follow(server, id);
    const accepted: string[] = [];
    for (let wave = 0; wave < 6; wave++) {
      const answers = await Promise.all(
        times(8, async (index) => {
          const input = `wave ${wave} prompt ${index}`;
          return { input, ...(await api(server, "POST", at(id, "/tasks"), { input })) };
        }),
      );
      // A short Task may end while the wave is still coming in, so more than one may start; never two at a time.
      const started = answers.filter(({ status }) => status === 202);
      expect(started.length).toBeGreaterThan(0);
      accepted.push(...started.map(({ input }) => input));
      await Promise.all(started.map(({ body }) => reader.untilEnded(body.taskId)));
    }
    const records = await expectLawful(server, id, reader.messages);
    const said = payloads(records, "text").flatMap(({ role, text }) => (role === "user" ? [text] : []));
    expect([...said].sort()).toEqual([...accepted].sort());
    expect(payloads(records, "request_end")).toHaveLength(accepted.length);
  });

  test("A26: one key sent 20 times at once runs once and gives one answer; another body with it is a mismatch", async () => {
    const id = await makeSession(server, { approvalMode: "allow-all" });
    const key = { "idempotency-key": "k-1" };
    const reader = await follow(server, id);
    // Equal as JSON is equal: the order of keys and the white space do not count.
    const bodies = [
      '{"input":"/run echo x >> out","thinkingLevel":"low"}',
      '{ "thinkingLevel": "low", "input": "/run echo x >> out" }',
    ];
    const answers = await Promise.all(
      times(20, (index) => api(server, "POST", at(id, "/tasks"), bodies[index % 2], key)),
    );
    const [first] = answers;
    expect(answers.map(({ status, body }) => [status, body.taskId])).toEqual(
      answers.map(() => [202, first?.body.taskId]),
    );
    await reader.untilEnded(first?.body.taskId);
    const { workspace } = (await api(server, "GET", at(id))).body;
    expect(readFileSync(join(workspace, "out"), "utf8")).toBe("x\n");
    const other = await api(server, "POST", at(id, "/tasks"), { input: "something else" }, key);
    expect(other).toMatchObject({ status: 409, body: { error: { code: "idempotency_mismatch" } } });
    // After the Task's end the key still stands; the same key on another Session is another key.
    expect((await api(server, "POST", at(id, "/tasks"), bodies[0], key)).body).toEqual(first?.body);
    const elsewhere = await makeSession(server);
    expect((await api(server, "POST", at(elsewhere, "/tasks"), { input: "hello" }, key)).body.taskId).not.toBe(
      first?.body.taskId,
    );
    await expectLawful(server, id, reader.messages);
  });

  test("D10: a Session that is made twice with one key is one Session, and a blank prompt makes nothing", async () => {
    const key = { "idempotency-key": "make-1" };
    const made = await Promise.all(times(10, () => api(server, "POST", "/api/sessions", { title: "twice" }, key)));
    expect(new Set(made.map(({ body }) => body.sessionId)).size).toBe(1);
    const listed = await api(server, "GET", "/api/sessions?limit=200");
    expect(listed.body.sessions.filter(({ title }: { title: string }) => title === "twice")).toHaveLength(1);
    const id = made[0]?.body.sessionId;
    for (const input of ["", "  \n\t", [], [{ type: "text", text: " " }]]) {
      expect((await api(server, "POST", at(id, "/tasks"), { input })).status).toBe(400);
    }
    expect((await history(server, id)).records).toHaveLength(1);
  });
});

describe("approvals", () => {
  test("E5: of 20 allow and deny at once exactly one decides, and every client sees the same", async () => {
    const id = await makeSession(server);
    const readers = await Promise.all(times(3, () => follow(server, id)));
    const [reader] = readers as [(typeof readers)[number]];
    const taskId = await prompt(server, id, "/run echo ran >> ran");
    const callId = await asked(reader);
    const answers = await Promise.all(
      times(20, async (index) => {
        const decision = index % 2 === 0 ? "allow" : "deny";
        return { decision, ...(await api(server, "POST", at(id, `/approvals/${callId}`), { decision })) };
      }),
    );
    const won = answers.filter(({ status }) => status === 204);
    expect(won).toHaveLength(1);
    for (const { status, body } of answers) {
      if (status !== 204) expect([status, body.error.code]).toEqual([409, "approval_already_decided"]);
    }
    await Promise.all(readers.map((each) => each.untilEnded(taskId)));
    for (const each of readers) expect(each.messages).toEqual(reader.messages);
    expect(payloads(reader.messages, "approval_decision")).toMatchObject([{ decision: won[0]?.decision }]);
    expect(payloads(reader.messages, "tool_call_output")).toHaveLength(1);
    const { workspace } = (await api(server, "GET", at(id))).body;
    const ran = () => readFileSync(join(workspace, "ran"), "utf8");
    if (won[0]?.decision === "allow") expect(ran()).toBe("ran\n");
    else expect(ran).toThrow("ENOENT");
    await expectLawful(server, id, reader.messages);
  });

  test("E5: after a kill too, and with an abort and a change of the mode among them: one decision, at most one execution", async () => {
    const first = await startOmnid();
    const id = await makeSession(first);
    const before = await follow(first, id);
    await prompt(first, id, "/run echo ran >> ran");
    const callId = await asked(before);
    await before.untilPayload("request_end");
    await first.stop("SIGKILL");
    const next = await first.restart();
    const readers = await Promise.all(times(3, () => follow(next, id)));
    const [reader] = readers as [(typeof readers)[number]];
    expect(await asked(reader)).toBe(callId);
    const { taskId } = reader.serverEvents("task_state")[0];
    const decideAs = (decision: string) => api(next, "POST", at(id, `/approvals/${callId}`), { decision });
    const [answers, aborted, patched] = await Promise.all([
      Promise.all(times(20, (index) => decideAs(index % 2 === 0 ? "allow" : "deny"))),
      api(next, "POST", at(id, "/abort")),
      api(next, "PATCH", at(id), { approvalMode: "allow-all" }),
    ]);
    expect([202, 204]).toContain(aborted.status);
    expect(patched.status).toBe(200);
    await Promise.all(readers.map((each) => each.untilEnded(taskId)));
    for (const each of readers) expect(each.messages).toEqual(reader.messages);
    const decisions = payloads(reader.messages, "approval_decision");
    expect(decisions).toHaveLength(1);
    const won = answers.filter(({ status }) => status === 204);
    expect(won.length).toBe(decisions[0]?.decided_by === "user" ? 1 : 0);
    expect(payloads(reader.messages, "tool_call_output")).toHaveLength(1);
    const { workspace } = (await api(next, "GET", at(id))).body;
    const ran = existsSync(join(workspace, "ran")) ? readFileSync(join(workspace, "ran"), "utf8") : "";
    expect(decisions[0]?.decision === "allow" ? ["", "ran\n"] : [""]).toContain(ran);
    await expectLawful(next, id, reader.messages, { joined: true });
  });

  test("E1 E2 E7 E17: who comes later is asked too, with the same time, and only the call's own id answers", async () => {
    const id = await makeSession(server);
    const first = await follow(server, id);
    await prompt(server, id, "/run true");
    const callId = await asked(first);
    const late = await follow(server, id);
    expect(await asked(late)).toBe(callId);
    expect(late.events.map(({ data }) => data.type)).toEqual(["task_state", "approval_request"]);
    const [{ requestedAt }] = first.serverEvents("approval_request");
    expect(late.serverEvents("approval_request")[0].requestedAt).toBe(requestedAt);
    const listed = (await api(server, "GET", at(id, "/approvals"))).body.approvals;
    expect(listed).toMatchObject([{ requestedAt, toolCall: first.serverEvents("approval_request")[0].toolCall }]);
    for (const wrong of ["nothing", `${callId}x`, first.ids.at(-1) as string]) {
      const refused = await api(server, "POST", at(id, `/approvals/${wrong}`), { decision: "allow" });
      expect(refused).toMatchObject({ status: 404, body: { error: { code: "approval_not_found" } } });
    }
    for (const body of [{}, { decision: "maybe" }, { decision: "allow", extra: 1 }, { decision: "deny", reason: 5 }]) {
      expect((await api(server, "POST", at(id, `/approvals/${callId}`), body)).status).toBe(400);
    }
    expect((await api(server, "GET", at(id))).body.pendingApprovals).toBe(1);
  });

  test("a change of the mode decides what would no longer be asked", async () => {
    const id = await makeSession(server);
    const reader = await follow(server, id);
    const taskId = await prompt(server, id, "/parallel echo a && echo b");
    await asked(reader);
    expect((await api(server, "PATCH", at(id), { approvalMode: "allow-all" })).status).toBe(200);
    await reader.untilEnded(taskId);
    expect(reader.serverEvents("session_updated")[0].session.approvalMode).toBe("allow-all");
    expect(payloads(reader.messages, "approval_decision")).toMatchObject([
      { decision: "allow", decided_by: "policy" },
      { decision: "allow", decided_by: "policy" },
    ]);
    await expectLawful(server, id, reader.messages);
  });

  test("E10: an approval that nobody answers is denied by the clock, and the record says so", async () => {
    const impatient = await startOmnid({ env: { OMNID_APPROVAL_TIMEOUT_MS: "1000" } });
    const id = await makeSession(impatient);
    await prompt(impatient, id, "/run touch never");
    await untilIdle(impatient, id);
    const { records } = await history(impatient, id);
    expect(payloads(records, "approval_decision")).toMatchObject([{ decision: "deny", decided_by: "timeout" }]);
    expect(payloads(records, "tool_call_output")[0]?.output).toMatch(
      // As long as it was in fact, on a busy machine.
      /^Tool call denied: nobody answered within \d+(\.\d)? s\.$/,
    );
  });
});
