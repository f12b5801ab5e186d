// A provider with many answers open at once, each at the pace of a model: so many tokens a second, the answers one after
// the other within each beat, so that no two share a moment by arrangement. It begins when told to, says when every
// answer has all of its tokens, and ends them when told to.

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** How often something is sent, in ms. */
const TICK_MS = 2;

const frame = (choice: object) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", choices: [choice] })}\n\n`;
const TOKEN = Buffer.from(frame({ index: 0, delta: { content: " token" }, finish_reason: null }));
const END = `${frame({ index: 0, delta: {}, finish_reason: "stop" })}data: [DONE]\n\n`;

/** Is answered at once, and counts for nothing. */
export const WARM_UP = "are you there";

export function runPacedUpstream(answers: number, tokens: number, perSecond: number): void {
  const open: ServerResponse[] = [];
  const server = createServer((req, res) => {
    res.socket?.setNoDelay(true);
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.flushHeaders();
    let question = "";
    req.setEncoding("utf8").on("data", (text: string) => {
      question += text;
    });
    req.on("end", () => {
      if (question.includes(WARM_UP)) return void res.end(END);
      open.push(res);
      if (open.length === answers) process.send?.({ type: "open" });
    });
  });
  process.on("disconnect", () => process.exit());
  process.on("message", ({ type }: { type: string }) => {
    if (type === "go") pace(open, tokens, perSecond);
    else if (type === "finish") for (const res of open.splice(0)) res.end(END);
  });
  server.listen(0, "127.0.0.1", () => {
    process.send?.({ type: "listening", url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  });
}

/** Sends what is due by the clock: a late timer catches up. */
function pace(open: readonly ServerResponse[], tokens: number, perSecond: number): void {
  const all = open.length * tokens;
  const perMs = (open.length * perSecond) / 1000;
  const startedAt = performance.now();
  let sent = 0;
  const timer = setInterval(() => {
    const due = Math.min(all, Math.floor((performance.now() - startedAt) * perMs));
    for (; sent < due; sent += 1) open[sent % open.length]?.write(TOKEN);
    if (sent < all) return;
    clearInterval(timer);
    process.send?.({ type: "sent", seconds: (performance.now() - startedAt) / 1000 });
  }, TICK_MS);
}
