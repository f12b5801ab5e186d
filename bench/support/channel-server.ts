// The real server over one Channel: every hook and route that a reader's request passes, the stream that it opens, and a
// Channel as a Session has it, with its figures and its part of the budget. Whoever measures publishes to it.

import { Channel } from "../../src/channel/channel.js";
import { ChannelFigures } from "../../src/channel/channel-figures.js";
import { type FlushPace, FlushPacer } from "../../src/channel/flush-pacer.js";
import { HeartbeatWheel } from "../../src/channel/heartbeat.js";
import { ReplayBudget } from "../../src/channel/replay-budget.js";
import { systemClock } from "../../src/clock.js";
import { loadConfig } from "../../src/config.js";
import { createLog } from "../../src/http/logging.js";
import { createMetrics } from "../../src/http/metrics.js";
import { createServer } from "../../src/http/server.js";
import { measureChannels } from "../../src/measure.js";
import type { HostedSession, SessionHost } from "../../src/session/types.js";
import type { Fanout } from "./contenders.js";

const SESSION = "session-2026-07-18-03-10-22-a1b2c3d4";
const EPOCH = 1_785_035_422_531;

let requests = 0;

/** @param pace that of a Session unless given */
export async function channelServer(pace: FlushPace = new FlushPacer(systemClock())): Promise<Fanout> {
  const loaded = loadConfig({ LOG_LEVEL: "silent" }, () => "");
  if (!loaded.ok) throw new Error(loaded.problems.join("; "));
  const { config } = loaded;
  const clock = systemClock();
  const budget = new ReplayBudget(config.replayTotalBytes);
  const figures = new ChannelFigures();
  const channel = new Channel({
    epoch: EPOCH,
    ...{ maxEvents: config.replayEvents, maxBytes: config.replayBytes, budget, figures },
    heartbeat: new HeartbeatWheel({ intervalMs: config.heartbeatMs, clock }),
    pace,
  });
  const metrics = createMetrics();
  measureChannels(metrics, figures, budget);
  const host = hostOf(channel);
  const newId = () => `request-${++requests}`;
  const app = await createServer({ config, host, clock, newId, log: createLog(config), metrics });
  await app.ready();
  return { server: app.server, path: `/api/sessions/${SESSION}/stream`, publish: (json) => channel.publish(json) };
}

/** What the route of a stream asks of a host. */
function hostOf(channel: Channel): SessionHost {
  const snapshot = () => ({ events: ['{"type":"task_state","state":"running"}'] });
  const session: Pick<HostedSession, "follow"> = {
    follow: (sink, options) => channel.subscribe(sink, { snapshot, ...options }),
  };
  const host: Pick<SessionHost, "draining" | "hasRoomFor" | "use"> = {
    draining: false,
    hasRoomFor: () => true,
    use: async (_id, _owner, work) => work(session as HostedSession),
  };
  return host as SessionHost;
}
