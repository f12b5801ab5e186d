// What a provider gave goes back byte for byte in the place that it came from: through the whole server, over its death
// by SIGKILL, in the raw bytes of the next request. What each stream holds is told by hand.

import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test, vi } from "vitest";
import {
  expectDropped,
  expectPrefix,
  occurrences,
  type Played,
  type Spoken,
  Stage,
  unmarked,
} from "./fidelity-stage.js";

// Servers are started and killed here, which takes its time where the machine is shared.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 180_000 });

interface Own {
  name: string;
  protocol: Spoken;
  /** The assistant's part of the next request. */
  sent: string;
  /** What must go to nobody else. */
  opaque: string[];
}

const OWN: Own[] = [
  {
    name: "thinking-then-calls",
    protocol: "anthropic-messages",
    sent:
      '{"role":"assistant","content":[{"type":"thinking","thinking":"Let me see.","signature":"U2lnbmVk"},' +
      '{"type":"text","text":"Looking."},{"type":"tool_use","id":"toolu_a","name":"one","input":{"x":1}},' +
      '{"type":"tool_use","id":"toolu_b","name":"two","input":{}}]}',
    opaque: ["U2lnbmVk"],
  },
  {
    name: "hidden-thinking",
    protocol: "anthropic-messages",
    sent:
      '{"role":"assistant","content":[{"type":"redacted_thinking","data":"UmVkMQ=="},' +
      '{"type":"redacted_thinking","data":"UmVkMg=="},{"type":"thinking","thinking":"","signature":"U2ln"},' +
      '{"type":"text","text":"ok"}]}',
    opaque: ["UmVkMQ==", "UmVkMg==", "U2ln"],
  },
  {
    name: "interleaved",
    protocol: "anthropic-messages",
    sent:
      '{"role":"assistant","content":[{"type":"thinking","thinking":"first","signature":"QQ=="},' +
      '{"type":"tool_use","id":"toolu_a","name":"one","input":{}},' +
      '{"type":"thinking","thinking":"second","signature":"Qg=="},{"type":"text","text":"so"}]}',
    opaque: ["QQ==", "Qg=="],
  },
  {
    name: "server-tool",
    protocol: "anthropic-messages",
    sent:
      '{"role":"assistant","content":[{"type":"text","text":"Searching."},' +
      '{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}},' +
      '{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1",' +
      '"content":[{"type":"web_search_result","url":"https://x","encrypted_content":"RW5j"}]},' +
      '{"type":"text","text":"Found.","citations":[{"type":"web_search_result_location","encrypted_index":"SWR4"}]}]}',
    opaque: ["RW5j", "SWR4", "srvtoolu_1"],
  },
  {
    name: "signed-runs",
    protocol: "gemini",
    sent:
      '{"role":"model","parts":[{"text":"ab"},{"text":"c","thoughtSignature":"c2lnQQ=="},{"text":"d"},' +
      '{"text":"e","thoughtSignature":"c2lnQg=="},{"text":"f","thoughtSignature":"c2lnQw=="},{"text":"g"},' +
      '{"text":"","thoughtSignature":"c2lnRA=="}]}',
    opaque: ["c2lnQQ==", "c2lnQg==", "c2lnQw==", "c2lnRA=="],
  },
  {
    name: "signed-thoughts",
    protocol: "gemini",
    sent:
      '{"role":"model","parts":[{"text":"so","thought":true,"thoughtSignature":"dGgx"},' +
      '{"text":"","thought":true,"thoughtSignature":"dGgy"},{"text":"because"}]}',
    opaque: ["dGgx", "dGgy"],
  },
  {
    name: "calls-with-ids",
    protocol: "gemini",
    sent:
      '{"role":"model","parts":[{"functionCall":{"name":"one","args":{},"id":"a1"},"thoughtSignature":"c2ln"},' +
      '{"functionCall":{"name":"two","args":{},"id":"b 2"}}]}',
    opaque: ["c2ln"],
  },
  {
    name: "code-and-media",
    protocol: "gemini",
    sent:
      '{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"print(1)"},"thoughtSignature":"Y29kZQ=="},' +
      '{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1\\n"}},' +
      '{"inlineData":{"mimeType":"image/png","data":"dGhpbms="},"thought":true,"thoughtSignature":"aW1n"},' +
      '{"inlineData":{"mimeType":"image/png","data":"c2hvdw=="}},{"somethingNew":{"a":[1]}},{"text":"There."}]}',
    opaque: ["Y29kZQ==", "aW1n", "dGhpbms=", "somethingNew", "executableCode"],
  },
  {
    name: "summaries",
    protocol: "openai-responses",
    sent:
      '{"type":"reasoning","summary":[{"type":"summary_text","text":"**One**"},{"type":"summary_text","text":"Two."}],' +
      '"id":"rs_1","encrypted_content":"second+/="},' +
      '{"type":"message","role":"assistant","content":[{"type":"output_text","text":"ok","annotations":[]}]}',
    opaque: ["second+/=", "rs_1"],
  },
  {
    name: "phases",
    protocol: "openai-responses",
    sent:
      '{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Looking.","annotations":[]}],' +
      '"phase":"commentary"},' +
      '{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Found.","annotations":[]}],' +
      '"phase":"final_answer"}',
    opaque: ["commentary", "final_answer"],
  },
  {
    name: "think-then-text",
    protocol: "openai-chat",
    sent: '{"role":"assistant","content":"42","reasoning_content":"Let me see."}',
    opaque: ["Let me see."],
  },
  {
    name: "reasoning-details",
    protocol: "openai-chat",
    sent:
      '{"role":"assistant","content":null,"reasoning":"Let me.","reasoning_details":[' +
      '{"type":"reasoning.text","text":"Let me.","format":"anthropic-claude-v1","index":0,"signature":"U2ln+/=="},' +
      '{"type":"reasoning.encrypted","data":"RW5j+/==","id":"rs_1","format":"openai-responses-v1","index":1}],' +
      '"tool_calls":[{"id":"toolu_1","type":"function","function":{"name":"one","arguments":"{\\"x\\": 1.0}"}}]}',
    opaque: ["U2ln+/==", "RW5j+/==", "Let me."],
  },
];

describe("written streams", () => {
  let stage: Stage;
  let played: Map<string, Played>;
  beforeAll(async () => {
    stage = await Stage.open();
    const read = ({ protocol, name }: Own) =>
      readFileSync(new URL(`../fixtures/${protocol}/${name}.sse`, import.meta.url));
    played = await stage.playAll(OWN.map((own) => ({ ...own, bytes: read(own) })));
  });

  test.each(OWN)("F5: $protocol/$name goes back byte for byte, before and after the server was killed", (own) => {
    const { before, after } = played.get(own.name) as Played;
    for (const raw of [...before.slice(1), after]) expect(occurrences(unmarked(raw), own.sent), raw).toBe(1);
    expectPrefix(before.at(-1) as string, after);
  });

  test.each(OWN)("F8: $protocol/$name leaves nothing of its maker's in a request to another model", async (own) => {
    await expectDropped(stage.server, (played.get(own.name) as Played).session, own.opaque);
  });
});
