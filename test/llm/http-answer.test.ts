// The handler between undici and the event reader, driven by hand.

import { describe, expect, test } from "vitest";
import { type Controller, HttpAnswer } from "../../src/llm/http-answer.js";
import { ManualClock } from "./manual-clock.js";

const KB = 1024;

class FakeConnection implements Controller {
  readonly log: string[] = [];
  readonly answer = new HttpAnswer();

  abort(): void {
    this.log.push("abort");
    this.answer.onResponseError(this, new Error("aborted"));
  }

  pause(): void {
    this.log.push("pause");
  }

  resume(): void {
    this.log.push("resume");
  }

  begin(): void {
    this.answer.onRequestStart(this);
    this.answer.onResponseStart(this, 200, { "content-type": "text/event-stream" });
  }

  bytes(count: number): void {
    this.answer.onResponseData(this, Buffer.alloc(count, "x"));
  }
}

test("who waits is woken by the head, by bytes, by the end, and need not wait for what is here", async () => {
  const connection = new FakeConnection();
  const { answer } = connection;
  const head = answer.moved();
  connection.begin();
  await head;
  expect(answer.takeHead()).toMatchObject({ statusCode: 200 });
  const first = answer.moved();
  connection.bytes(3);
  await first;
  expect(answer.moved()).toBeUndefined();
  expect(answer.take()?.length).toBe(3);
  const last = answer.moved();
  answer.onResponseEnd();
  await last;
  expect(answer.take()).toBeUndefined();
});

test("an informational head is not the answer's", () => {
  const connection = new FakeConnection();
  connection.answer.onRequestStart(connection);
  connection.answer.onResponseStart(connection, 103, {});
  expect(connection.answer.takeHead()).toBeUndefined();
  connection.answer.onResponseStart(connection, 404, {});
  expect(connection.answer.takeHead()).toMatchObject({ statusCode: 404 });
});

test("bytes that came before a reset are given out, then the reset", () => {
  const connection = new FakeConnection();
  connection.begin();
  connection.bytes(2);
  connection.bytes(3);
  connection.answer.onResponseError(connection, new Error("reset"));
  expect(connection.answer.take()?.length).toBe(5);
  expect(() => connection.answer.take()).toThrow("reset");
});

test("a reset before the head is thrown where the head is asked for", () => {
  const connection = new FakeConnection();
  connection.answer.onRequestStart(connection);
  connection.answer.onResponseError(connection, new Error("refused"));
  expect(() => connection.answer.takeHead()).toThrow("refused");
});

test("the socket is not read beyond 256 KB that nobody took, and again once they are taken", () => {
  const connection = new FakeConnection();
  connection.begin();
  for (let n = 0; n < 3; n++) connection.bytes(64 * KB);
  expect(connection.log).toEqual([]);
  connection.bytes(64 * KB);
  expect(connection.log).toEqual(["pause"]);
  expect(connection.answer.take()?.length).toBe(256 * KB);
  expect(connection.log).toEqual(["pause", "resume"]);
  connection.bytes(KB);
  connection.answer.take();
  expect(connection.log).toEqual(["pause", "resume"]);
});

describe("cancel", () => {
  test("wakes who waits for a connection that has not been made, and takes nothing from it when it is", async () => {
    const connection = new FakeConnection();
    const { answer } = connection;
    const moved = answer.moved();
    answer.cancel();
    await moved;
    expect(() => answer.takeHead()).toThrow("closed");
    expect(connection.log).toEqual([]);
    answer.onRequestStart(connection);
    expect(connection.log).toEqual(["abort"]);
  });

  test("closes the connection once", () => {
    const connection = new FakeConnection();
    connection.begin();
    connection.answer.cancel();
    connection.answer.cancel();
    expect(connection.log).toEqual(["abort"]);
  });

  test("of an answer that has ended does nothing to its connection, which may carry another", () => {
    const connection = new FakeConnection();
    connection.begin();
    connection.answer.onResponseEnd();
    connection.answer.cancel();
    expect(connection.log).toEqual([]);
  });
});

describe("release", () => {
  const released = (atOnce: boolean) => {
    const clock = new ManualClock();
    const connection = new FakeConnection();
    connection.begin();
    connection.bytes(256 * KB);
    connection.answer.release(clock, atOnce);
    return { clock, connection };
  };

  test("gives the body a second to end, so that the connection is kept", () => {
    const { clock, connection } = released(false);
    expect(connection.log).toEqual(["pause", "resume"]);
    connection.answer.onResponseEnd();
    expect(clock.pending).toBe(0);
    expect(connection.log).toEqual(["pause", "resume"]);
  });

  test("closes a body that does not end in that second", () => {
    const { clock, connection } = released(false);
    clock.advance(1000);
    expect(connection.log).toEqual(["pause", "resume", "abort"]);
  });

  test("closes a body that still has much to say", () => {
    const { clock, connection } = released(false);
    for (let n = 0; n < 5; n++) connection.bytes(64 * KB);
    expect(connection.log).toEqual(["pause", "resume", "abort"]);
    expect(clock.pending).toBe(0);
  });

  test("at once closes", () => {
    expect(released(true).connection.log).toEqual(["pause", "abort"]);
  });
});
