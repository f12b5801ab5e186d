import { describe, expect, test } from "vitest";
import { systemClock } from "../../src/clock.js";
import { createEnvironment } from "../../src/tools/environment.js";
import { callOf, execute, gate, HandClock, toolOf } from "./support.js";

const INTERRUPTED = "[interrupted: tool aborted by user]";
const clock = systemClock();
const only = (run: Parameters<typeof toolOf>[0], maxOutputChars = 16_000) =>
  createEnvironment({ tools: [toolOf(run)], clock, maxOutputChars });

describe("abort", () => {
  test("before the start: the marker alone, and the tool never runs", async () => {
    let ran = false;
    const environment = only(async function* () {
      ran = true;
      yield "";
      return {};
    });
    const { result, deltas } = await execute(environment, "tool", {}, { signal: AbortSignal.abort() });
    expect(result).toMatchObject({ output: INTERRUPTED, stop_reason: "aborted" });
    expect(deltas).toEqual([INTERRUPTED]);
    expect(ran).toBe(false);
  });

  test("in the middle: what was streamed, then the marker as the last delta; what the tool says after is dropped", async () => {
    const abort = new AbortController();
    const environment = only(async function* (_, { signal }) {
      yield "so far";
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      yield "too late";
      return { exitCode: 0 };
    });
    const { result, deltas } = await execute(
      environment,
      "tool",
      {},
      {
        signal: abort.signal,
        onDelta: () => abort.abort(),
      },
    );
    expect(result).toMatchObject({ output: `so far${INTERRUPTED}`, stop_reason: "aborted" });
    expect(result).not.toHaveProperty("exit_code");
    expect(deltas.at(-1)).toBe(INTERRUPTED);
  });

  test("while output is held back, its end comes before the marker and the limit holds", async () => {
    const abort = new AbortController();
    const environment = only(async function* () {
      yield "a".repeat(5000);
      yield "the end";
      abort.abort();
      yield "too late";
      return {};
    }, 300);
    const { result, deltas } = await execute(environment, "tool", {}, { signal: abort.signal });
    expect(result.output.length).toBeLessThanOrEqual(300);
    expect(result.output.endsWith(`the end${INTERRUPTED}`)).toBe(true);
    expect(deltas.at(-1)).toBe(INTERRUPTED);
  });

  test("F3: a tool that ignores it is abandoned after its grace", async () => {
    const hand = new HandClock();
    const abort = new AbortController();
    const tool = toolOf(async function* () {
      yield "hanging";
      await new Promise(() => {});
      return {};
    });
    const environment = createEnvironment({ tools: [tool], clock: hand });
    const running = execute(
      environment,
      "tool",
      {},
      {
        signal: abort.signal,
        onDelta: (delta) => {
          if (delta === "hanging") setImmediate(() => abort.abort());
        },
      },
    );
    abort.signal.addEventListener("abort", () => setImmediate(() => hand.advance(200)));
    expect((await running).result).toMatchObject({ output: `hanging${INTERRUPTED}`, stop_reason: "aborted" });
  });

  test("F3: a tool that never waits and never ends cannot keep the abort from being seen", async () => {
    const abort = new AbortController();
    let live = true;
    const environment = only(async function* () {
      while (live) yield "flood";
      return {};
    });
    setImmediate(() => abort.abort());
    const { result } = await execute(environment, "tool", {}, { signal: abort.signal });
    live = false;
    expect(result.stop_reason).toBe("aborted");
  });

  test("a listener is not left on the signal when a call ends", async () => {
    const { signal } = new AbortController();
    let listeners = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners += 1;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners -= 1;
      remove(...args);
    };
    const environment = only(async function* () {
      yield "x";
      return {};
    });
    await execute(environment, "tool", {}, { signal });
    expect(listeners).toBe(0);
  });

  test("a reader that walks away ends the tool", async () => {
    const closed = gate();
    const environment = only(async function* (_, { signal }) {
      try {
        yield "one";
        yield "two";
        return {};
      } finally {
        if (signal.aborted) closed.open();
      }
    });
    const { signal } = new AbortController();
    for await (const _ of environment.execute({
      call: callOf("tool", {}),
      signal,
      onProgress: () => {},
      pointTo: async () => {},
    }))
      break;
    await closed.opened;
  });
});
