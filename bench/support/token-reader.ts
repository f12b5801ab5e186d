// The reader of the token-path benchmark: counts the deltas that arrive, cheaply, until the stream says it is over.

interface Read {
  server: "omnid" | "proxy";
  url: string;
  deltas: number;
}

export function runReader(): void {
  process.on("message", (message: { type: string } & Read) => {
    if (message.type === "read") void read(message).then(() => process.send?.({ type: "done" }), fail);
  });
}

async function read({ server, url, deltas }: Read): Promise<void> {
  const answer = server === "omnid" ? await startTask(url) : await fetch(url, { method: "POST" });
  if (!answer.ok || answer.body === null) throw new Error(`${server} answered ${answer.status}`);
  const mark = server === "omnid" ? '"event_type":"delta"' : '" token"';
  let seen = 0;
  let carry = "";
  for await (const text of answer.body.pipeThrough(new TextDecoderStream())) {
    const all = carry + text;
    let from = 0;
    for (let at = all.indexOf(mark); at >= 0; at = all.indexOf(mark, from)) {
      seen += 1;
      from = at + mark.length;
    }
    // A mark may be cut between two reads.
    carry = all.slice(Math.max(from, all.length - mark.length + 1));
  }
  if (seen < deltas) throw new Error(`${server}: ${seen} of ${deltas} deltas arrived`);
}

async function startTask(url: string): Promise<Response> {
  const created = await fetch(`${url}/api/sessions`, { method: "POST" });
  const { sessionId } = (await created.json()) as { sessionId: string };
  return fetch(`${url}/api/sessions/${sessionId}/tasks`, {
    method: "POST",
    headers: { accept: "text/event-stream", "content-type": "application/json" },
    body: JSON.stringify({ input: "go" }),
  });
}

function fail(error: unknown): void {
  console.error(error);
  process.exit(1);
}
