import { Writable } from "node:stream";
import { pino } from "pino";
import { expect, test } from "vitest";
import { createMetrics } from "../src/http/metrics.js";
import { measureWork } from "../src/measure.js";
import { manualChannel, message, ReaderSink } from "./channel/support.js";

test("a reader that is disconnected because it does not read is logged with its Session and the reason, and counted", async () => {
  const metrics = createMetrics();
  const lines: string[] = [];
  const log = pino({ level: "info" }, new Writable({ write: (line, _, done) => done(void lines.push(String(line))) }));
  const { onChannelStat } = measureWork(metrics, log);
  const { channel, turn, clock } = manualChannel({
    maxEvents: 2,
    onStat: (stat) => onChannelStat(stat, "session-1"),
  });
  const sink = new ReaderSink();
  channel.subscribe(sink, { snapshot: () => ({ events: ["{}"] }) });
  sink.isStalled = true;
  sink.backlog = 70_000;
  for (let n = 1; n <= 10; n += 1) {
    channel.publish(message(n));
    turn();
  }
  clock.advance(80_000);
  expect(sink.state).toBe("destroyed");
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { sessionId: "session-1", reason: "does_not_read", msg: expect.stringContaining("disconnected") },
  ]);
  expect(await metrics.text()).toMatch(/^omnid_readers_dropped_total\{reason="does_not_read"\} 1$/m);
});

test("what is worth an alert is there at 0 before it has happened, so that the first time is seen", async () => {
  const metrics = createMetrics();
  measureWork(metrics, pino({ level: "silent" }));
  const series = (await metrics.text())
    .split("\n")
    .filter((line) => /^omnid_(resyncs|readers_dropped)_total\{/.test(line));
  expect(series).toEqual([
    'omnid_resyncs_total{reason="evicted"} 0',
    'omnid_resyncs_total{reason="other_epoch"} 0',
    'omnid_resyncs_total{reason="not_reached"} 0',
    'omnid_resyncs_total{reason="not_an_id"} 0',
    'omnid_resyncs_total{reason="slow_reader"} 0',
    'omnid_readers_dropped_total{reason="does_not_read"} 0',
    'omnid_readers_dropped_total{reason="fell_behind"} 0',
    'omnid_readers_dropped_total{reason="fault"} 0',
  ]);
});
