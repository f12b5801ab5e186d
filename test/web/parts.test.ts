import fc from "fast-check";
import { expect, test } from "vitest";
import type { Session } from "../../src/web/types.d.ts";
import { load } from "./modules.js";

const { withListEvent } = await load("session-list.js");
const { readArguments } = await load("tool-card.js");
const { linkText } = await load("standing.js");
const { backoffMs } = await load("waiting.js");

const session = (sessionId: string, lastActiveAt: string, more: object = {}) =>
  ({ sessionId, lastActiveAt, ...more }) as unknown as Session;
const ids = (sessions: Session[]) => sessions.map(({ sessionId }) => sessionId);

test("the list keeps the newest activity first, each Session once, children and archived ones out", () => {
  let list = [session("b", "2026-01-02"), session("a", "2026-01-01")];
  const take = (type: string, changed: Session) => {
    list = withListEvent(list, { type, session: changed });
    return ids(list);
  };
  expect(take("session_created", session("c", "2026-01-03"))).toEqual(["c", "b", "a"]);
  expect(take("session_updated", session("a", "2026-01-04"))).toEqual(["a", "c", "b"]);
  expect(take("session_created", session("d", "2026-01-05", { parentSessionId: "a" }))).toEqual(["a", "c", "b"]);
  expect(take("session_updated", session("c", "2026-01-06", { archived: true }))).toEqual(["a", "b"]);
  expect(ids(withListEvent(list, { type: "session_deleted", sessionId: "a" }))).toEqual(["b"]);
  expect(withListEvent(list, { type: "shutdown" })).toBe(list);
});

test("arguments are read by name, the telling one apart; what is no object is shown as it is", () => {
  expect(readArguments('{"timeout_ms":5,"cmd":"ls\\npwd"}')).toEqual({
    telling: "ls\npwd",
    others: [{ name: "timeout_ms", value: "5" }],
    raw: "",
  });
  expect(readArguments("  ")).toEqual({ telling: "", others: [], raw: "" });
  for (const raw of ['{"cmd":"l', "[1]", "null", "7"]) expect(readArguments(raw).raw).toBe(raw);
});

test("A25: the pause between tries grows to 15 s and no further, and is never the same for all", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5000 }), fc.double({ min: 0, max: 1, noNaN: true }), (failures, random) => {
      const pause = backoffMs(failures, () => random);
      const most = Math.min(15_000, 500 * 2 ** (failures - 1));
      expect(pause).toBeGreaterThanOrEqual(Math.floor(most / 2));
      expect(pause).toBeLessThanOrEqual(most);
    }),
  );
});

test("the state of the connection is said in words, with the seconds that are left", () => {
  const now = Date.parse("2026-07-18T03:10:22.000Z");
  expect(linkText({ kind: "reconnecting", at: now + 2_100, why: "gone" }, now).text).toBe("Reconnecting in 3 s");
  expect(linkText({ kind: "reconnecting", at: now - 50, why: "gone" }, now).text).toBe("Reconnecting in 0 s");
  expect(linkText({ kind: "live", resynced: true }, now).text).toBe("Live, resynced");
});
