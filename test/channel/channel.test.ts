import { expect, test } from "vitest";
import { ChannelFigures } from "../../src/channel/channel-figures.js";
import {
  EPOCH,
  idle,
  manualChannel,
  message,
  parseStream,
  ReaderSink,
  range,
  seqOf,
  seqs,
  taskState,
} from "./support.js";

const approval = (n: number) => JSON.stringify({ type: "approval_request", n });
const typesOf = (sink: ReaderSink) => sink.events.map((event) => JSON.parse(event.data).type as string);
const reasonsOf = (sink: ReaderSink) => sink.events.flatMap((event) => JSON.parse(event.data).reason ?? []);

test("a fresh connection starts with task_state, retry and the head's id, to the byte", () => {
  const { channel, turn } = manualChannel();
  for (let n = 1; n <= 41; n += 1) channel.publish(message(n));
  const sink = new ReaderSink();
  channel.subscribe(sink, { snapshot: () => ({ events: [taskState(), approval(1)] }) });
  channel.publish(message(42));
  turn();
  expect(sink.text).toBe(
    `retry: 1000\nid: ${EPOCH}-41\nevent: server_event\ndata: ${taskState()}\n\n` +
      `event: server_event\ndata: ${approval(1)}\n\n` +
      `id: ${EPOCH}-42\ndata: ${message(42)}\n\n`,
  );
});

test("an empty Last-Event-ID is a fresh connection", () => {
  const { channel } = manualChannel();
  channel.publish(message(1));
  const sink = new ReaderSink();
  channel.subscribe(sink, { lastEventId: "", snapshot: idle });
  expect(typesOf(sink)).toEqual(["task_state"]);
});

test("a reconnection gets the gap, then the snapshot without an id, then live (A1, A12)", () => {
  const { channel, turn } = manualChannel();
  for (let n = 1; n <= 50; n += 1) channel.publish(message(n));
  channel.announce(taskState({ state: "running" }));
  const sink = new ReaderSink("chunked");
  channel.subscribe(sink, { lastEventId: `${EPOCH}-30`, snapshot: () => ({ events: [taskState(), approval(1)] }) });
  channel.publish(message(51));
  turn();
  expect(seqs(sink.events)).toEqual(range(31, 51));
  expect(typesOf(sink).slice(19)).toEqual(["model_msg", "task_state", "approval_request", "model_msg"]);
  expect(sink.events.map((event) => event.retry)).toEqual(["1000", ...new Array(22).fill(undefined)]);
  expect(sink.events[20]?.id).toBeUndefined();
});

test("a reconnection at the head has no gap, and its task_state carries the id to resume from", () => {
  const { channel } = manualChannel();
  const zero = new ReaderSink();
  channel.subscribe(zero, { lastEventId: `${EPOCH}-0`, snapshot: idle });
  expect(zero.events).toEqual([{ retry: "1000", id: `${EPOCH}-0`, event: "server_event", data: taskState() }]);
});

test.each([
  ["evicted", `${EPOCH}-3`],
  ["other_epoch", `${EPOCH - 1}-19`],
  ["other_epoch", `${EPOCH + 1}-19`],
  ["not_reached", `${EPOCH}-21`],
  ["not_reached", `${EPOCH}-99999999999999999999`],
  ["not_an_id", "41"],
  ["not_an_id", `${EPOCH}-١٩`],
])(
  "a gap that cannot be replayed is announced as %s with the head's id, then the snapshot (A4, A11, A19)",
  (reason, id) => {
    const { channel, stats, turn } = manualChannel({ maxEvents: 10 });
    for (let n = 1; n <= 20; n += 1) channel.publish(message(n));
    const sink = new ReaderSink();
    channel.subscribe(sink, { lastEventId: id, snapshot: idle });
    channel.publish(message(21));
    turn();
    const [first, second, third, ...rest] = sink.events;
    expect(first).toEqual({
      retry: "1000",
      id: `${EPOCH}-20`,
      event: "server_event",
      data: JSON.stringify({ type: "resync_required", reason }),
    });
    expect(second).toEqual({ event: "server_event", data: taskState() });
    expect(third).toEqual({ id: `${EPOCH}-21`, data: message(21) });
    expect(rest).toEqual([]);
    expect(stats).toEqual([{ name: "resync_required", reason }]);
  },
);

test("10,000 messages in one turn get 10,000 ids, each one more than the last (A2, A3)", () => {
  const { channel, turn } = manualChannel();
  const sink = new ReaderSink();
  channel.subscribe(sink, { snapshot: idle });
  for (let n = 1; n <= 10_000; n += 1) channel.publish(message(n));
  turn();
  expect(seqs(sink.events)).toEqual(range(1, 10_000));
  expect(sink.events.slice(1).every((event) => event.id?.startsWith(`${EPOCH}-`))).toBe(true);
});

test("the ring replays exactly its bound of messages, whatever was announced between them", () => {
  const { channel } = manualChannel({ maxEvents: 5 });
  for (let n = 1; n <= 20; n += 1) {
    channel.publish(message(n));
    channel.announce(taskState({ n }));
  }
  const last = new ReaderSink();
  channel.subscribe(last, { lastEventId: `${EPOCH}-15`, snapshot: idle });
  expect(seqs(last.events)).toEqual(range(16, 20));
  const beyond = new ReaderSink();
  channel.subscribe(beyond, { lastEventId: `${EPOCH}-14`, snapshot: idle });
  expect(reasonsOf(beyond)).toEqual(["evicted"]);
});

test("the newest message is replayed even when it alone is over the bound", () => {
  const { channel } = manualChannel({ maxBytes: 1_000 });
  channel.publish(message(1));
  channel.publish(JSON.stringify("x".repeat(5_000)));
  for (let n = 0; n < 50; n += 1) channel.announce(taskState({ n }));
  const sink = new ReaderSink();
  channel.subscribe(sink, { lastEventId: `${EPOCH}-1`, snapshot: idle });
  expect(seqs(sink.events)).toEqual([2]);
});

test("bytes are counted as UTF-8, not as characters", () => {
  const { channel } = manualChannel({ maxBytes: 10_000 });
  for (let n = 1; n <= 20; n += 1) channel.publish(JSON.stringify("北".repeat(300)));
  const sink = new ReaderSink();
  channel.subscribe(sink, { lastEventId: `${EPOCH}-10`, snapshot: idle });
  expect(seqs(sink.events)).toEqual(range(11, 20));
  const far = new ReaderSink();
  channel.subscribe(far, { lastEventId: `${EPOCH}-5`, snapshot: idle });
  expect(reasonsOf(far)).toEqual(["evicted"]);
});

test("a burst larger than the ring reaches every reader that keeps up, whole (C6)", () => {
  const { channel, turn } = manualChannel({ maxEvents: 3 });
  const sink = new ReaderSink();
  channel.subscribe(sink, { snapshot: idle });
  for (let n = 1; n <= 100; n += 1) channel.publish(message(n));
  turn();
  expect(seqs(sink.events)).toEqual(range(1, 100));
  expect(reasonsOf(sink)).toEqual([]);
});

test("readers at the same place share one buffer, one write a turn", () => {
  const { channel, turn } = manualChannel();
  const readers = Array.from({ length: 10 }, () => new ReaderSink("chunked"));
  for (const sink of readers) channel.subscribe(sink, { snapshot: idle });
  for (let n = 1; n <= 16; n += 1) channel.publish(message(n));
  turn();
  for (const sink of readers) {
    expect(sink.writes).toHaveLength(2);
    expect(sink.writes[1]).toBe(readers[0]?.writes[1]);
  }
});

test("joining in the middle of a turn gives each message once, at every place (A6, A18)", () => {
  const { channel, turn } = manualChannel();
  const readers: { sink: ReaderSink; head: number }[] = [];
  for (let n = 1; n <= 200; n += 1) {
    channel.publish(message(n));
    const fresh = new ReaderSink();
    channel.subscribe(fresh, { snapshot: () => ({ events: [taskState({ head: n })] }) });
    const resumed = new ReaderSink();
    channel.subscribe(resumed, { lastEventId: `${EPOCH}-${n >> 1}`, snapshot: idle });
    readers.push({ sink: fresh, head: n }, { sink: resumed, head: n >> 1 });
    if (n % 7 === 0) turn();
  }
  turn();
  for (const { sink, head } of readers) expect(seqs(sink.events)).toEqual(range(head + 1, 200));
});

test("two readers with different cursors get the same messages, and neither moves the other (A9, A21)", () => {
  const { channel, turn } = manualChannel();
  for (let n = 1; n <= 10; n += 1) channel.publish(message(n));
  const early = new ReaderSink();
  const late = new ReaderSink();
  channel.subscribe(early, { lastEventId: `${EPOCH}-2`, snapshot: idle });
  channel.subscribe(late, { lastEventId: `${EPOCH}-8`, snapshot: idle });
  channel.publish(message(11));
  turn();
  expect(seqs(early.events)).toEqual(range(3, 11));
  expect(seqs(late.events)).toEqual(range(9, 11));
});

test("two Channels share nothing: resuming one never shows the other's events (A10, A11)", () => {
  const one = manualChannel();
  const two = manualChannel({ epoch: EPOCH + 1 });
  for (let n = 1; n <= 5; n += 1) {
    one.channel.publish(message(n));
    two.channel.publish(message(100 + n));
  }
  const sink = new ReaderSink();
  one.channel.subscribe(sink, { lastEventId: two.channel.headId, snapshot: idle });
  expect(typesOf(sink)).toEqual(["resync_required", "task_state"]);
});

test("five reconnects cost one pass: only what came since is sent again (A15)", () => {
  const { channel, turn } = manualChannel();
  let lastEventId = "";
  let bytes = 0;
  const seen: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    const sink = new ReaderSink();
    channel.subscribe(sink, { lastEventId, snapshot: idle });
    for (let n = 0; n < 100; n += 1) channel.publish(message(n));
    turn();
    sink.drop();
    seen.push(...seqs(sink.events));
    lastEventId = sink.events.at(-1)?.id as string;
    bytes += sink.text.length;
  }
  expect(seen).toEqual(range(1, 500));
  expect(bytes).toBeLessThan(500 * 80);
});

test("a reader that is a little behind is written to; beyond 64 KB it waits, and nothing is lost or repeated (C5, C6, C7)", () => {
  const { channel, turn } = manualChannel();
  const sink = new ReaderSink();
  channel.subscribe(sink, { snapshot: idle });
  sink.isStalled = true;
  for (let n = 1; n <= 1_000; n += 1) {
    channel.publish(JSON.stringify({ n, text: "x".repeat(1_000) }));
    turn();
  }
  expect(sink.queuedBytes).toBeGreaterThan(65_536);
  expect(sink.queuedBytes).toBeLessThan(65_536 + 2_000);
  expect(sink.writes.length).toBeGreaterThan(50);
  sink.drain();
  turn();
  expect(seqs(sink.events)).toEqual(range(1, 1_000));
});

test("a replay goes out in pieces of 128 KB at most, each after the reader took the last (A23)", () => {
  const { channel } = manualChannel({ maxBytes: 100_000_000 });
  for (let n = 1; n <= 5_000; n += 1) channel.publish(JSON.stringify({ n, text: "x".repeat(500) }));
  const sink = new ReaderSink();
  sink.isStalled = true;
  channel.subscribe(sink, { lastEventId: `${EPOCH}-0`, snapshot: idle });
  let drains = 0;
  while (sink.queuedBytes > 0) {
    expect(sink.queuedBytes).toBeLessThanOrEqual(3 * 65_536 + 100);
    sink.readOnce();
    drains += 1;
    if (drains > 1_000) break;
  }
  expect(drains).toBeGreaterThan(10);
  expect(sink.writes.every((bytes) => bytes.length <= 2 * 65_536 + 100)).toBe(true);
  expect(seqs(sink.events)).toEqual(range(1, 5_000));
  expect(typesOf(sink).at(-1)).toBe("task_state");
});

test("readers that catch up on the same messages are given the same bytes, not copies of them", () => {
  const { channel } = manualChannel();
  for (let n = 1; n <= 5_000; n += 1) channel.publish(message(n));
  const [one, two] = [new ReaderSink("chunked"), new ReaderSink("chunked")];
  channel.subscribe(one, { lastEventId: `${EPOCH}-0`, snapshot: idle });
  channel.subscribe(two, { lastEventId: `${EPOCH}-100`, snapshot: idle });
  const shared = new Set(one.writes.map(({ buffer }) => buffer));
  const bytes = two.writes.filter(({ buffer }) => shared.has(buffer)).reduce((sum, { length }) => sum + length, 0);
  expect(bytes).toBeGreaterThan(0.9 * two.text.length);
  expect(seqs(two.events)).toEqual(range(101, 5_000));
});

test("readers that resume in front of one large message are given the same bytes, and one that keeps up too", () => {
  const { channel, turn } = manualChannel();
  const live = new ReaderSink("chunked");
  channel.subscribe(live, { snapshot: idle });
  channel.publish(message(1));
  const large = JSON.stringify({ type: "model_msg", text: "x".repeat(300_000) });
  channel.publish(large);
  channel.publish(message(3));
  turn();
  const resumed = Array.from({ length: 5 }, () => new ReaderSink("chunked"));
  for (const sink of resumed) {
    sink.isStalled = true;
    channel.subscribe(sink, { lastEventId: `${EPOCH}-1`, snapshot: idle });
  }
  const bytesOf = ({ writes }: ReaderSink) => writes.find(({ length }) => length > 300_000);
  for (const sink of resumed) expect(bytesOf(sink)).toBe(bytesOf(live));
  const own = resumed.flatMap(({ writes }) => writes.filter(({ length }) => length <= 300_000));
  expect(own.reduce((sum, { length }) => sum + length, 0)).toBeLessThan(5 * 1000);
  for (const sink of resumed) sink.drain();
  for (const { events } of resumed) {
    expect(events.slice(0, 2).map(({ id }) => id)).toEqual([`${EPOCH}-2`, `${EPOCH}-3`]);
    expect(events[0]).toMatchObject({ retry: "1000", data: large });
  }
});

test("a large message between announcements comes at its place, live and resumed", () => {
  const { channel, turn } = manualChannel();
  const live = new ReaderSink();
  channel.subscribe(live, { snapshot: idle });
  const large = JSON.stringify({ type: "model_msg", text: "x".repeat(100_000) });
  channel.announce('{"type":"a"}');
  channel.publish(large);
  channel.announce('{"type":"b"}');
  channel.publish(message(2));
  turn();
  expect(live.events.slice(1).map(({ data }) => (data === large ? "large" : JSON.parse(data).type))).toEqual([
    "a",
    "large",
    "b",
    JSON.parse(message(2)).type,
  ]);
  const resumed = new ReaderSink();
  channel.subscribe(resumed, { lastEventId: `${EPOCH}-0`, snapshot: idle });
  expect(resumed.events.slice(0, 2).map(({ data }) => data)).toEqual([large, message(2)]);
});

test("a stalled reader that the ring passes gets one resync_required, a fresh snapshot and the head's id (C3)", () => {
  const { channel, turn, stats } = manualChannel({ maxEvents: 10 });
  const stalled = new ReaderSink();
  const other = new ReaderSink();
  const snapshot = () => ({ events: [taskState({ head: channel.headId }), approval(1)] });
  channel.subscribe(stalled, { snapshot });
  channel.subscribe(other, { snapshot });
  stalled.isStalled = true;
  stalled.backlog = 70_000;
  for (let n = 1; n <= 500; n += 1) {
    channel.publish(message(n));
    turn();
  }
  expect(seqs(other.events)).toEqual(range(1, 500));
  stalled.drain();
  channel.publish(message(501));
  turn();
  expect(stalled.events.slice(2).map((event) => event.data)).toEqual([
    message(1),
    JSON.stringify({ type: "resync_required", reason: "slow_reader" }),
    taskState({ head: `${EPOCH}-500` }),
    approval(1),
    message(501),
  ]);
  expect(stalled.events[3]).toMatchObject({ id: `${EPOCH}-500`, event: "server_event" });
  expect(stalled.events[4]?.id).toBeUndefined();
  expect(stats).toEqual([{ name: "resync_required", reason: "slow_reader" }]);
});

test("a stalled reader that only announcements passed is told too", () => {
  const { channel, turn } = manualChannel({ maxEvents: 10 });
  const sink = new ReaderSink();
  channel.subscribe(sink, { snapshot: idle });
  sink.isStalled = true;
  sink.backlog = 70_000;
  for (let n = 0; n < 30; n += 1) {
    channel.announce(approval(n));
    turn();
  }
  sink.drain();
  expect(typesOf(sink)).toEqual(["task_state", "approval_request", "resync_required", "task_state"]);
});

test("announcements come at their place between messages and are not replayed to one who connects later", () => {
  const { channel, turn } = manualChannel();
  const sink = new ReaderSink();
  channel.subscribe(sink, { snapshot: idle });
  channel.announce(approval(1));
  channel.publish(message(1));
  channel.announce(approval(2));
  channel.announce(approval(3));
  channel.publish(message(2));
  turn();
  expect(sink.events.slice(1).map((event) => event.data)).toEqual([
    approval(1),
    message(1),
    approval(2),
    approval(3),
    message(2),
  ]);
  expect(sink.events.slice(1).map((event) => event.id && seqOf(event))).toEqual([
    undefined,
    1,
    undefined,
    undefined,
    2,
  ]);
  const late = new ReaderSink();
  channel.subscribe(late, { lastEventId: `${EPOCH}-0`, snapshot: idle });
  expect(typesOf(late)).toEqual(["model_msg", "model_msg", "task_state"]);
});

test("a stream ends right after the announcement it waits for, and no other stream does", () => {
  const { channel, turn } = manualChannel();
  const task = new ReaderSink();
  const whole = new ReaderSink();
  channel.subscribe(task, { snapshot: idle, endsAt: (tag) => tag === "ended:1" });
  channel.subscribe(whole, { snapshot: idle });
  channel.publish(message(1));
  channel.announce(taskState({ task: 0 }), "ended:0");
  channel.announce(taskState({ task: 1 }), "ended:1");
  channel.publish(message(2));
  turn();
  expect(task.events.at(-1)?.data).toBe(taskState({ task: 1 }));
  expect(seqs(task.events)).toEqual([1]);
  expect(task.state).toBe("ended");
  expect(seqs(whole.events)).toEqual([1, 2]);
  expect(whole.state).toBe("open");
  expect(channel.subscribers).toBe(1);
});

test("a stream that was resynced past its end is ended by the snapshot", () => {
  const { channel, turn } = manualChannel({ maxEvents: 4 });
  let over = false;
  const sink = new ReaderSink();
  channel.subscribe(sink, {
    snapshot: () => ({ events: [taskState({ over })], over }),
    endsAt: (tag) => tag === "end",
  });
  sink.isStalled = true;
  sink.backlog = 70_000;
  channel.publish(message(1));
  turn();
  channel.announce(taskState({ ended: true }), "end");
  over = true;
  for (let n = 2; n <= 20; n += 1) channel.publish(message(n));
  turn();
  sink.drain();
  expect(sink.events.slice(2).map((event) => event.data)).toEqual([
    JSON.stringify({ type: "resync_required", reason: "slow_reader" }),
    taskState({ over: true }),
  ]);
  expect(sink.state).toBe("ended");
});

test("a stream of something that is over gives the gap, one snapshot, and ends", () => {
  const { channel } = manualChannel();
  channel.publish(message(1));
  const sink = new ReaderSink();
  channel.subscribe(sink, { lastEventId: `${EPOCH}-0`, snapshot: () => ({ events: [taskState()], over: true }) });
  expect(typesOf(sink)).toEqual(["model_msg", "task_state"]);
  expect(sink.state).toBe("ended");
  expect(channel.subscribers).toBe(0);
});

test("the end reaches every reader after all there is, also one that was behind and one who comes later", () => {
  const { channel } = manualChannel();
  const shutdown = JSON.stringify({ type: "shutdown", retryMs: 1_000 });
  const live = new ReaderSink();
  const behind = new ReaderSink();
  channel.subscribe(live, { snapshot: idle });
  channel.subscribe(behind, { snapshot: idle });
  behind.isStalled = true;
  channel.publish(JSON.stringify("x".repeat(70_000)));
  channel.publish(message(2));
  channel.end(shutdown);
  channel.end(shutdown);
  expect(live.state).toBe("ended");
  expect(seqs(live.events)).toEqual([1, 2]);
  expect(behind.state).toBe("open");
  behind.drain();
  expect(behind.state).toBe("ended");
  const late = new ReaderSink();
  channel.subscribe(late, { lastEventId: `${EPOCH}-1`, snapshot: idle });
  expect(late.state).toBe("ended");
  expect(late.events.map((event) => event.data)).toEqual([message(2), taskState(), shutdown]);
  for (const sink of [live, behind]) expect(sink.events.at(-1)?.data).toBe(shutdown);
});

test("a reader that took nothing for a minute goes, once the ring has passed it (C2)", () => {
  const { channel, turn, clock, stats } = manualChannel({ maxEvents: 10 });
  const sink = new ReaderSink();
  channel.subscribe(sink, { snapshot: idle });
  sink.isStalled = true;
  sink.backlog = 70_000;
  channel.publish(message(1));
  turn();
  clock.advance(120_000);
  expect(sink.state).toBe("open");
  for (let n = 0; n < 20; n += 1) channel.publish(message(n));
  clock.advance(15_000);
  expect(sink.state).toBe("destroyed");
  expect(channel.subscribers).toBe(0);
  expect(clock.timers).toBe(0);
  expect(stats).toEqual([{ name: "reader_dropped", reason: "does_not_read" }]);
});

test("a clock that is set back keeps no reader that took nothing for a minute", () => {
  const { channel, turn, clock } = manualChannel({ maxEvents: 10 });
  const sink = new ReaderSink();
  channel.subscribe(sink, { snapshot: idle });
  sink.isStalled = true;
  sink.backlog = 70_000;
  channel.publish(message(1));
  turn();
  for (let n = 0; n < 20; n += 1) channel.publish(message(n));
  clock.setBack(3_600_000);
  clock.advance(75_000);
  expect(sink.state).toBe("destroyed");
});

test("a reader that took nothing for a minute of a Channel that has ended goes, and the ring with it (C2)", () => {
  const figures = new ChannelFigures();
  const { channel, turn, clock, stats } = manualChannel({ figures });
  const sink = new ReaderSink();
  channel.subscribe(sink, { snapshot: idle });
  sink.isStalled = true;
  sink.backlog = 70_000;
  channel.publish(message(1));
  turn();
  channel.publish(message(2));
  channel.end();
  expect(figures).toMatchObject({ readers: 1, blocked: 1 });
  clock.advance(75_000);
  expect(sink.state).toBe("destroyed");
  expect(stats).toEqual([{ name: "reader_dropped", reason: "does_not_read" }]);
  expect(figures).toMatchObject({ readers: 0, blocked: 0 });
});

test("the last event of a Channel reaches those, too, that had to skip it", () => {
  const { channel, turn } = manualChannel({ maxEvents: 4 });
  const final = JSON.stringify({ type: "shutdown" });
  const [passed, replaying] = [new ReaderSink(), new ReaderSink()];
  channel.subscribe(passed, { snapshot: idle });
  passed.isStalled = true;
  passed.backlog = 70_000;
  for (let n = 1; n <= 20; n += 1) channel.publish(message(n));
  turn();
  // One whose replay does not fit: its snapshot is still to come.
  replaying.isStalled = true;
  replaying.backlog = 70_000;
  channel.subscribe(replaying, { snapshot: idle, lastEventId: `${EPOCH}-17` });
  channel.end(final);
  for (const sink of [passed, replaying]) {
    sink.drain();
    expect(sink.events.filter(({ data }) => data === final)).toHaveLength(1);
    expect(sink.events.at(-1)?.data).toBe(final);
    expect(sink.state).toBe("ended");
  }
});

test("a reader that misses events without ids is ended: there is nothing that it could go on from", () => {
  const { channel, turn, stats } = manualChannel({ epoch: undefined as never, maxEvents: 10 });
  const sink = new ReaderSink();
  channel.subscribe(sink, { snapshot: () => ({ events: [] }) });
  sink.isStalled = true;
  sink.backlog = 70_000;
  for (let n = 1; n <= 20; n += 1) {
    channel.announce(taskState({ n }));
    turn();
  }
  sink.drain();
  expect(sink.state).toBe("ended");
  expect(sink.events.map(({ data }) => data)).toEqual([taskState({ n: 1 })]);
  expect(stats).toEqual([{ name: "reader_dropped", reason: "fell_behind" }]);
  expect(channel.subscribers).toBe(0);
});

test("what is published, delivered, replayed and evicted is counted, and who reads and who is blocked", () => {
  const figures = new ChannelFigures();
  const { channel, turn } = manualChannel({ figures, maxEvents: 3 });
  const [one, two] = [new ReaderSink(), new ReaderSink("chunked")];
  for (const sink of [one, two]) channel.subscribe(sink, { snapshot: idle });
  two.isStalled = true;
  two.backlog = 70_000;
  for (let n = 1; n <= 3; n += 1) channel.publish(message(n));
  channel.announce(taskState());
  turn();
  expect(figures).toMatchObject({ published: 3, announced: 1, delivered: 2 * (1 + 4), readers: 2, blocked: 1 });
  for (let n = 4; n <= 7; n += 1) channel.publish(message(n));
  turn();
  expect(figures).toMatchObject({ evicted: 4, delivered: 14, blocked: 1 });
  // Passed by: the notice and its snapshot.
  two.drain();
  expect(figures).toMatchObject({ delivered: 16, blocked: 0 });
  channel.subscribe(new ReaderSink(), { snapshot: idle, lastEventId: `${EPOCH}-4` });
  channel.subscribe(new ReaderSink(), { snapshot: idle, lastEventId: `${EPOCH}-1` });
  expect(figures).toMatchObject({ replays: 1, delivered: 16 + 4 + 2, readers: 4 });
  expect(figures.deliveredBytes).toBeGreaterThan(Buffer.byteLength(one.text + two.text));
  for (const sink of [one, two]) sink.drop();
  expect(figures.readers).toBe(2);
});

test("a stream that has ended but is not read does not keep its connection for ever (C2)", () => {
  const { channel, clock } = manualChannel();
  const sink = new ReaderSink();
  channel.subscribe(sink, { snapshot: idle });
  channel.end();
  channel.end();
  expect(sink.state).toBe("ended");
  clock.advance(75_000);
  expect(sink.state).toBe("destroyed");
  expect(clock.timers).toBe(0);
});

test("a fault in one reader's snapshot or connection ends that reader only, and is reported (B7)", () => {
  const { channel, turn, stats } = manualChannel();
  const error = new Error("no state");
  const broken = new ReaderSink();
  channel.subscribe(broken, {
    snapshot: () => {
      throw error;
    },
  });
  const failing = new ReaderSink();
  channel.subscribe(failing, { snapshot: idle });
  failing.onEvent = () => {
    throw error;
  };
  const fine = new ReaderSink();
  channel.subscribe(fine, { snapshot: idle });
  channel.publish(message(1));
  turn();
  expect([broken.state, failing.state, fine.state]).toEqual(["destroyed", "destroyed", "open"]);
  expect(seqs(fine.events)).toEqual([1]);
  expect(channel.subscribers).toBe(1);
  expect(stats).toEqual([
    { name: "reader_failed", error },
    { name: "reader_failed", error },
  ]);
});

test("closing every stream leaves nothing behind, and what comes next can still be resumed (A20, C10)", () => {
  const { channel, clock, turn } = manualChannel();
  for (let n = 0; n < 100; n += 1) {
    const sink = new ReaderSink();
    channel.subscribe(sink, { snapshot: idle });
    sink.drop();
  }
  expect(channel.subscribers).toBe(0);
  expect(clock.timers).toBe(0);
  channel.publish(message(1));
  turn();
  const sink = new ReaderSink();
  channel.subscribe(sink, { lastEventId: `${EPOCH}-0`, snapshot: idle });
  expect(seqs(sink.events)).toEqual([1]);
});

test("a Channel without ids opens with a comment and retry, sends no empty event, and only announcements", () => {
  const { clock } = manualChannel();
  const { channel, turn, heartbeat } = manualChannel({ epoch: undefined as never });
  const sink = new ReaderSink();
  channel.subscribe(sink, { lastEventId: "7-7", snapshot: () => ({ events: [] }) });
  expect(sink.text).toBe(": ok\nretry: 1000\n");
  channel.announce(JSON.stringify({ type: "session_created" }));
  turn();
  expect(sink.events).toEqual([
    { retry: "1000", event: "server_event", data: JSON.stringify({ type: "session_created" }) },
  ]);
  expect(() => channel.publish(message(1))).toThrow("no ids");
  expect(heartbeat.monotonic()).toBe(clock.monotonic());
});

test("JSON on two lines is refused before any reader sees half of it (B1)", () => {
  const { channel } = manualChannel();
  expect(() => channel.publish('{\n"type":"model_msg"}')).toThrow("single line");
  expect(() => channel.announce('{"a":"\r"}')).toThrow("single line");
  expect(channel.headId).toBe(`${EPOCH}-0`);
});

test("any text survives as it is: the stream splits at LF only (B1, B3)", () => {
  const { channel, turn } = manualChannel();
  const sink = new ReaderSink("chunked");
  channel.subscribe(sink, { snapshot: idle });
  const json = JSON.stringify({ text: "北🙂é \u2028 \u2029 \u0085 \\n \u0000 id: 9-9" });
  channel.publish(json);
  turn();
  expect(parseStream(sink.text).events.at(-1)).toEqual({ id: `${EPOCH}-1`, data: json });
});
