// The caller's own functions may throw: whoever follows goes on, and the caller hears of it.

import { expect, onTestFinished, test, vi } from "vitest";
import { createClient } from "../../src/client/index.js";
import { said } from "../support/messages.js";
import { FakeHost, isLive } from "./fake-host.js";
import { until } from "./until.js";

const bug = new Error("a bug in a listener");
const broken = () => {
  throw bug;
};

test("a subscriber that throws ends nothing, and the others hear of everything", async () => {
  const host = new FakeHost();
  const errors: unknown[] = [];
  const following = host.client.session("session-1").follow({ onError: (error) => errors.push(error) });
  following.subscribe(broken);
  await until(following, isLive);
  host.do(...said(["Good day"]).map((message) => ({ kind: "say", message }) as const));
  await until(following, ({ messages }) => messages.length === 2);
  following.close();
  await following.closed;
  expect(following.view.connection).toEqual({ status: "closed" });
  expect(new Set(errors)).toEqual(new Set([bug]));
  expect(host.streamsFrom()).toHaveLength(1);
});

test("without onError the console has what a subscriber throws, and what onError itself throws", async () => {
  const said = vi.spyOn(console, "error").mockImplementation(() => {});
  onTestFinished(() => said.mockRestore());
  for (const options of [{}, { onError: broken }]) {
    said.mockClear();
    const following = new FakeHost().client.session("session-1").follow(options);
    following.subscribe(broken);
    await until(following, isLive);
    following.close();
    await following.closed;
    expect(said).toHaveBeenCalledWith(bug);
  }
});

test("a subscriber may close what it listens to, from within the close too", async () => {
  const host = new FakeHost();
  const following = host.client.session("session-1").follow();
  const seen: string[] = [];
  following.subscribe(() => {
    seen.push(following.view.connection.status);
    following.close();
  });
  await following.closed;
  expect(seen).toEqual(["connecting", "closed"]);
});

test("a list goes on when a subscriber and onEvent throw, and closes in order", async () => {
  const errors: unknown[] = [];
  let stream: ReadableStreamDefaultController<Uint8Array> | undefined;
  const fetch = async (url: unknown, init?: RequestInit) => {
    if (!String(url).endsWith("/events")) return Response.json({ sessions: [] });
    const start = (controller: ReadableStreamDefaultController<Uint8Array>) => {
      stream = controller;
      init?.signal?.addEventListener("abort", () => controller.error(init.signal?.reason));
    };
    return new Response(new ReadableStream<Uint8Array>({ start }));
  };
  const following = createClient({ baseUrl: "http://host", fetch }).sessions.follow({
    onEvent: broken,
    onError: (error) => errors.push(error),
  });
  following.subscribe(broken);
  await vi.waitFor(() => expect(following.view.connection.status).toBe("live"));
  const session = { sessionId: "session-1", lastActiveAt: "2026-01-01T00:00:00Z", archived: false };
  const frame = `data: ${JSON.stringify({ type: "session_created", session })}\n\n`;
  stream?.enqueue(new TextEncoder().encode(frame));
  await vi.waitFor(() => expect(following.view.sessions).toHaveLength(1));
  expect(following.view.connection.status).toBe("live");
  following.close();
  await following.closed;
  expect(following.view.connection).toEqual({ status: "closed" });
  expect(new Set(errors)).toEqual(new Set([bug]));
});
