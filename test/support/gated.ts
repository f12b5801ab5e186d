// Scripts that a test lets through step by step, to look at what is there at each of them.

import type { SseReader } from "./sse-client.js";
import { type Gate, gate, type Script, type Step } from "./upstream.js";

/** The gate in front of one step. */
export interface StepGate extends Gate {
  /** What a fragment says once the step is through; absent where a step shows nothing of its own. */
  readonly shows?: string;
}

/** The script with a gate in front of each of its steps. The texts of its steps have to differ. */
export function gated(script: Script): { script: Script; gates: StepGate[] } {
  const gates = script.steps.map((step) => ({ ...gate(), ...shownBy(step) }));
  const steps = script.steps.flatMap((step, index) => [gates[index] as Gate, step]);
  return { script: { ...script, steps }, gates };
}

function shownBy(step: Step): { shows?: string } {
  const { choices } = step as { choices?: { delta: { content?: string; reasoning_content?: string } }[] };
  const { content, reasoning_content } = choices?.[0]?.delta ?? {};
  const shows = content ?? reasoning_content;
  return shows === undefined ? {} : { shows };
}

/**
 * Opens one gate after the other. `look` runs before each, right after it, while its step is on its way, and once more
 * when `reader` has what the step shows: so what is looked at does not depend on who is faster.
 */
export async function throughAll(
  reader: SseReader,
  gates: readonly StepGate[],
  look: () => Promise<unknown>,
): Promise<void> {
  for (const each of gates) {
    await look();
    each.open();
    await look();
    const { shows } = each;
    if (shows === undefined) continue;
    await reader.until(({ name, data }) => name === undefined && saidBy(data.payload) === shows);
    await look();
  }
}

const saidBy = ({ type, text, thinking }: Record<string, unknown>) =>
  type === "partial_text" ? text : type === "partial_thinking" ? thinking : undefined;
