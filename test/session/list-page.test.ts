import fc from "fast-check";
import { expect, test } from "vitest";
import { pageOf } from "../../src/session/list-page.js";
import type { SessionRecord } from "../../src/session/session-record.js";

const record = fc.record({
  sessionId: fc.uuid(),
  // Many at the same instant: the id decides.
  lastActiveAt: fc.integer({ min: 0, max: 5 }).map((n) => `2026-01-01T00:00:0${n}.000Z`),
  owner: fc.constantFrom("a", "b", null),
  archived: fc.boolean(),
  parentSessionId: fc.constantFrom(undefined, undefined, "parent"),
}) as fc.Arbitrary<unknown> as fc.Arbitrary<SessionRecord>;

test("pages of any size, one after the other, are all that was asked for, the newest first, each once", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(record, { selector: ({ sessionId }) => sessionId, maxLength: 60 }),
      fc.integer({ min: 1, max: 20 }),
      fc.constantFrom("a", null),
      fc.boolean(),
      fc.constantFrom(undefined, "parent"),
      (records, limit, owner, archived, parent) => {
        const expected = records
          .filter((each) => each.owner === owner && each.parentSessionId === parent && (archived || !each.archived))
          .map((each) => `${each.lastActiveAt} ${each.sessionId}`)
          .sort()
          .reverse();
        const seen: string[] = [];
        let cursor: string | undefined;
        do {
          const query = { limit, archived, ...(parent === undefined ? {} : { parent }) };
          const page = pageOf(records, cursor === undefined ? query : { ...query, cursor }, owner);
          expect(page?.records.length).toBeLessThanOrEqual(limit);
          seen.push(...(page?.records ?? []).map((each) => `${each.lastActiveAt} ${each.sessionId}`));
          cursor = page?.nextCursor;
          if (cursor !== undefined) expect(page?.records).toHaveLength(limit);
        } while (cursor !== undefined);
        expect(seen).toEqual(expected);
      },
    ),
  );
});
