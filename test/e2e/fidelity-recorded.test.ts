// Recorded streams of real providers: what each held goes back byte for byte after the server was killed. The index of
// the recordings says what that is, so that no decoder of ours is its own judge.

import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { beforeAll, describe, expect, test, vi } from "vitest";
import type { Loose } from "./api.js";
import { expectDropped, expectInOrder, expectPrefix, type Played, type Spoken, Stage } from "./fidelity-stage.js";

// Servers are started and killed here, which takes its time where the machine is shared.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 180_000 });

const folder = resolve(process.env.OMNID_FIXTURES ?? "../shared/fixtures", "providers");
const isThere = existsSync(join(folder, "INDEX.json"));
if (!isThere) console.warn(`recorded provider streams are skipped: no ${folder}/INDEX.json`);

interface Recorded {
  id: string;
  protocol: Spoken;
  file: string;
  expect: {
    status: string;
    finish_reason?: string | null;
    refusal?: string;
    text: string;
    thinking: string;
    tool_calls: unknown[];
    fidelity: Loose[];
  };
}

/** Those that a right reading completes: of the others nothing enters the context as the assistant's words. */
const recorded: Recorded[] = (
  isThere ? (JSON.parse(readFileSync(join(folder, "INDEX.json"), "utf8")).files as Recorded[]) : []
).filter(
  ({ id, expect: right }) =>
    !id.startsWith("http-errors/") &&
    right.status === "completed" &&
    right.refusal === undefined &&
    right.text + right.thinking + right.tool_calls.join() !== "",
);

const member = (name: string, value: unknown): string => `"${name}":${JSON.stringify(value)}`;

/** What of an entry of the index must be in the next request, word for word. */
function bytesOf(kept: Loose): string[] {
  switch (kept.kind) {
    case "thinking_signature":
      return [member("signature", kept.value)];
    case "redacted_thinking":
      return [member("data", kept.value)];
    case "thought_signature":
      return [member("thoughtSignature", kept.value)];
    case "phase":
      return [member("phase", kept.value)];
    case "reasoning_item":
      return kept.encrypted_content ? [member("encrypted_content", kept.encrypted_content)] : [];
    case "reasoning_details":
      return kept.value
        .flatMap((entry: Loose) => [
          entry.signature && member("signature", entry.signature),
          entry.data && member("data", entry.data),
        ])
        .filter(Boolean);
    case "reasoning_field":
      return [];
    default:
      throw new Error(`an unknown kind in the index: ${kept.kind}`);
  }
}

/** Members that the index tells all of. */
const COUNTED: Record<Spoken, RegExp> = {
  "openai-chat": /"signature":"[^"]/g,
  "openai-responses": /"(?:encrypted_content|phase)":"[^"]/g,
  "anthropic-messages": /"signature":"[^"]/g,
  gemini: /"thoughtSignature":"(?!skip_thought_signature_validator")[^"]/g,
};

describe.skipIf(!isThere)("recorded streams", () => {
  let stage: Stage;
  let played: Map<string, Played>;
  beforeAll(async () => {
    stage = await Stage.open();
    const list = recorded.map((file) => ({ ...file, name: file.id, bytes: readFileSync(join(folder, file.file)) }));
    played = await stage.playAll(list);
  });

  test.each(recorded)(
    "F5: $id goes back byte for byte after the server was killed",
    ({ id, protocol, expect: right }) => {
      const { before, after } = played.get(id) as Played;
      const bytes = right.fidelity.flatMap(bytesOf);
      for (const raw of [...before.slice(1), after]) {
        expectInOrder(raw, bytes);
        // And nothing of the kind beside it, such as an earlier ciphertext of the same item.
        const counted = COUNTED[protocol];
        expect(raw.match(counted) ?? []).toHaveLength(bytes.filter((text) => text.match(counted)).length);
      }
      for (const { kind, value } of right.fidelity) {
        if (kind !== "reasoning_field" || value.includes("[") || value === "reasoning_details") continue;
        expect(after).toContain(member(value, right.thinking));
      }
      // An answer that paused went on in the same message.
      if (right.finish_reason !== "pause_turn") expectPrefix(before.at(-1) as string, after);
    },
  );

  test.each(recorded)(
    "F8: $id leaves nothing of its maker's in a request to another model",
    async ({ id, expect: right }) => {
      const opaque = right.fidelity.flatMap(bytesOf).filter((text) => !text.startsWith('"phase"'));
      const values = opaque.map((text) => text.slice(text.indexOf(":") + 2, -1));
      await expectDropped(stage.server, (played.get(id) as Played).session, values);
    },
  );
});
