import fc from "fast-check";
import { expect, test } from "vitest";
import { rewritePayload, withoutMember } from "../../src/trace/meta-rewrite.js";

const OWN = { session_id: "mine", workspace: '/w "quoted" \\ \u2028' };

test("only the named members of the payload get another value, wherever else their names stand", async () => {
  const member = fc.oneof(
    fc.constantFrom("session_id", "workspace", "payload", "__proto__", "a\\b", '"', "7"),
    fc.string(),
  );
  const payload = fc.dictionary(member, fc.jsonValue());
  await fc.assert(
    fc.property(fc.dictionary(member, fc.jsonValue()), payload, fc.constantFrom(0, 2), (envelope, inside, spaces) => {
      const value = { ...envelope, payload: inside };
      const expected = { ...value, payload: { ...inside } };
      for (const [name, own] of Object.entries(OWN)) if (Object.hasOwn(inside, name)) expected.payload[name] = own;
      expect(JSON.parse(rewritePayload(JSON.stringify(value, undefined, spaces), OWN))).toEqual(
        JSON.parse(JSON.stringify(expected)),
      );
    }),
  );
});

test("every other byte stays: long numbers, spaces, the order of keys and the way a name is written", () => {
  const json =
    ' {"type" : "session_meta","payload":{"big":12345678901234567890,"session\\u005fid":"old","2":1,"1":1e400 } }';
  expect(rewritePayload(json, OWN)).toBe(json.replace('"old"', '"mine"'));
});

test("a value of any depth and a text of any length are stepped over", () => {
  const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
  const long = JSON.stringify('\\"'.repeat(2_000_000));
  const json = `{"a":${deep},"payload":{"system_prompt":${long},"x":${deep},"session_id":{"session_id":1}}}`;
  expect(rewritePayload(json, OWN)).toBe(json.replace('{"session_id":1}', '"mine"'));
});

test("a payload that is no object has no members", () => {
  for (const json of ['{"payload":"session_id"}', '{"payload":[{"session_id":1}]}', "{}", '{"payload":{}}']) {
    expect(rewritePayload(json, OWN)).toBe(json);
  }
});

test("a member is left out wherever and however often it stands, and all others stay as they are written", () => {
  const member = fc.tuple(
    fc.constantFrom('"n"', '"n"', '"\\u006e"', '"a"', '"b"'),
    fc.constantFrom("1", '"n"', '{ "n" : 2 }', '[{"n":3},","]', '"}"', "1e400"),
  );
  const space = fc.constantFrom("", " ", "\t ");
  fc.assert(
    fc.property(fc.array(member, { maxLength: 6 }), space, (members, gap) => {
      const textOf = (some: typeof members) => some.map(([name, value]) => `${name}${gap}:${gap}${value}`);
      const kept = members.filter(([name]) => JSON.parse(name) !== "n");
      const json = `{${gap}${textOf(members).join(`${gap},${gap}`)}${gap}}`;
      const left = withoutMember(json, "n");
      expect(JSON.parse(left)).toEqual(JSON.parse(`{${textOf(kept).join(",")}}`));
      for (const text of textOf(kept)) expect(left).toContain(text);
      if (kept.length === members.length) expect(left).toBe(json);
    }),
    { numRuns: 500 },
  );
});
