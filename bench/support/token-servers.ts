// The three servers of the token-path benchmark: the scripted upstream, omnid in front of it, and the bare proxy.

import { mkdtempSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createParser } from "eventsource-parser";
import { loadConfig } from "../../src/config.js";
import { createLog } from "../../src/http/logging.js";
import { startServer } from "../../src/main.js";
import { acquireLease } from "../../src/session/lease.js";

/** Deltas that go out with one write: what a fast provider's kernel hands over at once. */
const PER_WRITE = 64;

/** Of the first answer: what a server loads and compiles when it is first asked is not what a token costs. */
export const WARM_UP = 10_048;

/** Answers every POST with `deltas` chunks of the chat protocol, the first with fewer, as fast as they are taken. */
export function runUpstream(deltas: number): void {
  let wanted = WARM_UP;
  const frame = (choice: object) =>
    `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", choices: [choice] })}\n\n`;
  const block = Buffer.from(frame({ index: 0, delta: { content: " token" }, finish_reason: null }).repeat(PER_WRITE));
  const end = `${frame({ index: 0, delta: {}, finish_reason: "stop" })}data: [DONE]\n\n`;
  const server = createServer((req, res) => {
    req.resume();
    res.writeHead(200, { "content-type": "text/event-stream" });
    let sent = 0;
    const due = wanted;
    wanted = deltas;
    const pump = () => {
      while (sent < due) {
        sent += PER_WRITE;
        if (!res.write(block)) {
          res.once("drain", pump);
          return;
        }
      }
      res.end(end);
    };
    pump();
  });
  listen(server);
}

export async function runOmnid(upstream: string): Promise<void> {
  const models = [
    { provider: "bench", modelId: "fast", protocol: "openai-chat", baseUrl: upstream, contextWindow: 1e6 },
  ];
  const dir = mkdtempSync(join(tmpdir(), "omnid-bench-"));
  const env = {
    PORT: "0",
    OMNID_DATA_DIR: dir,
    OMNID_CONFIG: "models",
    LOG_LEVEL: "silent",
    // The reader must get every delta, however slow it is: the ring holds the whole run.
    OMNID_REPLAY_EVENTS: "1000000",
    OMNID_REPLAY_BYTES: "1000000000",
  };
  const loaded = loadConfig(env, () => JSON.stringify({ models }));
  if (!loaded.ok) throw new Error(loaded.problems.join("; "));
  const lease = await acquireLease(dir);
  if (!lease.ok) throw new Error(lease.message);
  const { url } = await startServer(loaded.config, createLog(loaded.config), lease.value);
  measured(url);
}

/** Reads each upstream event, parses and stringifies it once, and writes it once. */
export function runProxy(upstream: string): void {
  const server = createServer((req, res) => {
    req.resume();
    res.writeHead(200, { "content-type": "text/event-stream" });
    const parser = createParser({
      onEvent: ({ data }) => {
        const event = data === "[DONE]" ? { done: true } : JSON.parse(data);
        res.write(`data: ${JSON.stringify(event)}\n\n`);
      },
    });
    const call = request(`${upstream}/chat/completions`, { method: "POST" }, (answer) => {
      answer.setEncoding("utf8");
      answer.on("data", (text: string) => {
        parser.feed(text);
        if (!res.writableNeedDrain) return;
        answer.pause();
        res.once("drain", () => answer.resume());
      });
      answer.on("end", () => res.end());
    });
    call.end("{}");
  });
  listen(server, measured);
}

function listen(server: ReturnType<typeof createServer>, then = say): void {
  server.listen(0, "127.0.0.1", () => then(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
}

const say = (url: string): void => void process.send?.({ type: "listening", url });

/** Says where it listens, and how much CPU it took since the mark. */
function measured(url: string): void {
  let mark = process.cpuUsage();
  process.on("message", ({ type }: { type: string }) => {
    if (type === "mark") {
      mark = process.cpuUsage();
      process.send?.({ type: "marked" });
    } else if (type === "measure") {
      const { user, system } = process.cpuUsage(mark);
      process.send?.({ type: "measured", cpuMicros: user + system });
    }
  });
  say(url);
}
