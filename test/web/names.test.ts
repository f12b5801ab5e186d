import { expect, test } from "vitest";
import { emptyView, type Session, type View } from "../../src/client/index.js";
import { userText } from "../../src/protocol/builders.js";
import { learnName, nameFrom, nameOf } from "../../src/web/names.js";
import { AT, metaOf } from "../support/messages.js";

const sessionOf = (id: string, title: string | null = null) => ({ sessionId: id, title }) as Session;

function viewOf(session: Session, prompts: string[], first = 0): View {
  const messages = [metaOf(), ...prompts.map((prompt) => userText(AT, prompt))];
  const shown = messages.map((message, index) => ({ key: String(index), message }));
  return { ...emptyView(session.sessionId), session, first, messages: shown };
}

test("a Session without a name is called by its id, and after its first prompt once that was seen", () => {
  const session = sessionOf("session-2026-07-18-03-10-22-a1b2c3d4");
  expect(nameOf(session)).toBe("Session a1b2c3d4");
  learnName(viewOf(session, []));
  learnName(viewOf(session, ["a later one"], 500));
  expect(nameOf(session)).toBe("Session a1b2c3d4");
  learnName(viewOf(session, ["\n mend the parser\nand more", "a second prompt"]));
  expect(nameOf(session)).toBe("mend the parser");
  expect(nameOf({ ...session, title: "Parser" })).toBe("Parser");
});

test("a Session that has a name keeps it, whatever is asked in it", () => {
  const session = sessionOf("named", "Parser");
  learnName(viewOf(session, ["something else"]));
  expect(nameOf({ ...session, title: null })).toBe("Session named");
});

test("a name is one line, cut between characters", () => {
  expect(nameFrom("  one\ntwo")).toBe("one");
  expect(nameFrom("🙂".repeat(100))).toBe(`${"🙂".repeat(59)}…`);
  expect(nameFrom(" \n ")).toBe("");
});
