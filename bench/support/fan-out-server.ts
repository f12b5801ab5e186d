// The server process of the fan-out benchmark: one contender, and a producer in the same event loop.

import { startFanout } from "./contenders.js";

/** In the text of each message after which the server waits; the client looks for it. */
export const END_MARK = "the-end-of-a-window";

/** So many events go out before the server waits until all readers have them: no socket is ever full. */
const WINDOW = 256;

export async function runServer(name: string): Promise<void> {
  const { fanout, url } = await startFanout(name);
  let before = process.cpuUsage();
  let resume = () => {};
  process.on("disconnect", () => process.exit());
  process.on("message", (message: { type: string; events: number; perTurn: number }) => {
    if (message.type === "publish") {
      before = process.cpuUsage();
      resume = produce(fanout.publish, message);
    } else if (message.type === "received") {
      resume();
    } else if (message.type === "measure") {
      const { user, system } = process.cpuUsage(before);
      process.send?.({ type: "measured", cpuMicros: user + system });
    }
  });
  process.send?.({ type: "listening", url });
}

/**
 * Publishes `perTurn` messages in each turn of the loop, and pauses after each window.
 * @returns what to call when the readers have the window.
 */
function produce(
  publish: (json: string) => void,
  { events, perTurn }: { events: number; perTurn: number },
): () => void {
  let published = 0;
  const turn = () => {
    for (let n = 0; n < perTurn; n += 1) {
      published += 1;
      const isMark = published % WINDOW === 0 || published === events;
      publish(messageJson(published, isMark ? END_MARK : "and so the next few words"));
    }
    if (published % WINDOW !== 0 && published < events) setImmediate(turn);
  };
  setImmediate(turn);
  return () => {
    if (published < events) setImmediate(turn);
  };
}

/** A text fragment as a Session sends it: with its frame about 220 bytes. */
function messageJson(n: number, text: string): string {
  return JSON.stringify({
    timestamp: "2026-07-18T03:10:22.123Z",
    type: "model_msg",
    payload: { type: "partial_text", stage: "delta", request_id: "request-01", segment: n % 7, text: `${text} ${n}` },
  });
}
