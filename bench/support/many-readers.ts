// Readers of many streams at once. Each stream's tokens are counted, and of omnid's the ids, which must have no hole.

import { type IncomingMessage, request } from "node:http";

export interface Reads {
  type: "read";
  /** POSTed to, one stream each. */
  urls: string[];
  kind: "omnid" | "proxy";
  tokens: number;
}

const HEADERS = { accept: "text/event-stream", "content-type": "application/json" };

/** Says `complete` when every stream has had all of its tokens, and `ended` when all are over. */
export function runManyReaders(): void {
  process.on("disconnect", () => process.exit());
  process.on("message", (message: Reads) => {
    if (message.type !== "read") return;
    const { urls, kind, tokens } = message;
    let complete = 0;
    let ended = 0;
    for (const url of urls) {
      const call = request(url, { method: "POST", headers: HEADERS, agent: false }, (answer) => {
        if (answer.statusCode !== 200) fail(new Error(`${url} was answered with ${answer.statusCode}`));
        const onComplete = () => {
          complete += 1;
          if (complete === urls.length) process.send?.({ type: "complete" });
        };
        follow(answer, kind, tokens, onComplete);
        answer.on("end", () => {
          ended += 1;
          if (ended === urls.length) process.send?.({ type: "ended" });
        });
      });
      call.on("error", fail);
      call.end(JSON.stringify({ input: "go" }));
    }
  });
}

function follow(answer: IncomingMessage, kind: Reads["kind"], tokens: number, onComplete: () => void): void {
  const mark = kind === "omnid" ? '"event_type":"delta"' : '" token"';
  let carry = "";
  let seen = 0;
  let lastSeq: number | undefined;
  answer.setEncoding("utf8");
  answer.on("error", fail);
  answer.on("data", (text: string) => {
    const all = carry + text;
    const end = all.lastIndexOf("\n\n") + 1;
    carry = all.slice(end);
    const whole = all.slice(0, end);
    const before = seen;
    for (let at = whole.indexOf(mark); at >= 0; at = whole.indexOf(mark, at + mark.length)) seen += 1;
    if (seen > tokens) fail(new Error(`${seen} tokens arrived, not ${tokens}`));
    if (kind === "omnid") lastSeq = checkIds(whole, lastSeq);
    if (before < tokens && seen === tokens) onComplete();
  });
  answer.on("end", () => {
    if (seen !== tokens) fail(new Error(`${seen} of ${tokens} tokens arrived`));
  });
}

/** @returns the last number. */
function checkIds(text: string, lastSeq: number | undefined): number | undefined {
  let last = lastSeq;
  for (const match of text.matchAll(/^id: \d+-(\d+)$/gm)) {
    const seq = Number(match[1]);
    if (last !== undefined && seq !== last + 1) fail(new Error(`message ${seq} came after ${last}`));
    last = seq;
  }
  return last;
}

function fail(error: unknown): void {
  console.error(error);
  process.exit(1);
}
