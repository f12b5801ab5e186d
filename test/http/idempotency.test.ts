import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Claim, IdempotencyKeys, idempotencyKey } from "../../src/http/idempotency.js";
import { manualClock } from "../support/manual-clock.js";

const SCOPE = { owner: "ada", method: "POST", path: "/api/sessions" };
const DAY_MS = 24 * 60 * 60 * 1000;

async function first<T>(claim: Promise<Claim<T>>) {
  const claimed = await claim;
  if (claimed.kind !== "first") throw new Error("it was not the first");
  return claimed.first;
}

describe("keys", () => {
  test("D10, A26: the second request with a key waits for the first and gets its answer", async () => {
    const keys = new IdempotencyKeys(manualClock());
    const one = await first(keys.claim<string>(SCOPE, "k", { a: 1 }, "settled"));
    const two = keys.claim<string>(SCOPE, "k", { a: 1 }, "settled");
    const order: string[] = [];
    const watched = two.then((claim) => order.push(`two: ${claim.kind === "repeated" ? claim.value : "first"}`));
    await Promise.resolve();
    order.push("one settles");
    await one.settle("answer");
    await watched;
    expect(order).toEqual(["one settles", "two: answer"]);
  });

  test("one that only looks goes on as soon as the answer is assigned", async () => {
    const keys = new IdempotencyKeys(manualClock());
    const one = await first(keys.claim<string>(SCOPE, "k", {}, "settled"));
    const looking = keys.claim<string>(SCOPE, "k", {}, "assigned");
    one.assign("early");
    expect(await looking).toEqual({ kind: "repeated", value: "early" });
  });

  test("a refusal is not kept: exactly one of those who waited is the next first", async () => {
    const keys = new IdempotencyKeys(manualClock());
    const one = await first(keys.claim<string>(SCOPE, "k", {}, "settled"));
    const waiting = [1, 2, 3].map(() => keys.claim<string>(SCOPE, "k", {}, "settled"));
    await one.settle(undefined);
    const next = await first(Promise.race(waiting));
    await next.settle("second try");
    const claims = await Promise.all(waiting);
    expect(claims.filter((claim) => claim.kind === "first")).toHaveLength(1);
    expect(claims.filter((claim) => claim.kind === "repeated" && claim.value === "second try")).toHaveLength(2);
  });

  test("A26: another body is a mismatch, in flight and afterwards", async () => {
    const keys = new IdempotencyKeys(manualClock());
    const one = await first(keys.claim(SCOPE, "k", { a: 1 }, "settled"));
    await expect(keys.claim(SCOPE, "k", { a: 2 }, "settled")).rejects.toMatchObject({ code: "idempotency_mismatch" });
    await one.settle("x");
    await expect(keys.claim(SCOPE, "k", {}, "settled")).rejects.toMatchObject({ code: "idempotency_mismatch" });
  });

  test("owner, method, path and key each keep keys apart", async () => {
    const keys = new IdempotencyKeys(manualClock());
    await (await first(keys.claim(SCOPE, "k", {}, "settled"))).settle("x");
    for (const other of [{ owner: null }, { owner: "bob" }, { method: "PUT" }, { path: "/api/sessions/1/tasks" }]) {
      await first(keys.claim({ ...SCOPE, ...other }, "k", {}, "settled"));
    }
    await first(keys.claim(SCOPE, "k2", {}, "settled"));
  });

  test("an answer is kept for a day and no longer", async () => {
    const clock = manualClock();
    const keys = new IdempotencyKeys(clock);
    await (await first(keys.claim(SCOPE, "k", {}, "settled"))).settle("x");
    clock.advance(DAY_MS - 1);
    expect((await keys.claim(SCOPE, "k", {}, "settled")).kind).toBe("repeated");
    clock.advance(1);
    expect((await keys.claim(SCOPE, "k", {}, "settled")).kind).toBe("first");
  });

  test("past its bound the oldest answers go first, and the newest stays however large", async () => {
    const keys = new IdempotencyKeys(manualClock(), { maxBytes: 3_100 });
    for (const name of ["a", "b", "c"])
      await (await first(keys.claim(SCOPE, name, {}, "settled"))).settle("x".repeat(600));
    await (await first(keys.claim(SCOPE, "d", {}, "settled"))).settle("x".repeat(600));
    expect((await keys.claim(SCOPE, "b", {}, "settled")).kind).toBe("repeated");
    await (await first(keys.claim(SCOPE, "a", {}, "settled"))).settle("x".repeat(9_000));
    expect((await keys.claim(SCOPE, "a", {}, "settled")).kind).toBe("repeated");
    expect((await keys.claim(SCOPE, "d", {}, "settled")).kind).toBe("first");
  });

  test("bodies are equal when they are the same JSON value, whatever the order of keys", async () => {
    const shuffle = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(shuffle);
      if (value === null || typeof value !== "object") return value;
      return Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([key, each]) => [key, shuffle(each)]),
      );
    };
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), fc.jsonValue(), async (one, other) => {
        const keys = new IdempotencyKeys(manualClock());
        await (await first(keys.claim(SCOPE, "k", one, "settled"))).settle("x");
        expect((await keys.claim(SCOPE, "k", shuffle(one), "settled")).kind).toBe("repeated");
        const isSame = isDeepStrictEqual(JSON.parse(JSON.stringify(one)), JSON.parse(JSON.stringify(other)));
        const claim = await keys.claim(SCOPE, "k", other, "settled").catch(() => undefined);
        expect(claim?.kind).toBe(isSame ? "repeated" : undefined);
      }),
    );
  });

  test.each(["", "x".repeat(256), "new\nline", "é"])("%j is no key", (header) => {
    expect(() => idempotencyKey(header)).toThrow(/Idempotency-Key/);
  });
});
