// One configured MCP server for as long as this process runs: connected to in the background, again after each loss,
// with waits that grow while it keeps failing. Nothing it does reaches further than its own tools.

import type { Clock } from "../clock.js";
import { settingsHider } from "../mcp-settings.js";
import { reasonOf } from "../reason-of.js";
import { type CallOutcome, type McpClient, type McpServerSpec, OpenFailure, openMcpClient } from "./mcp-client.js";
import { LIST_RATE } from "./mcp-limits.js";
import { judgeTools, type McpTool } from "./mcp-tool-list.js";
import { Throttle } from "./throttle.js";

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
/** A connection that lasted this long did not fail at once: the next one is tried without a wait. */
const STEADY_MS = 10_000;
/** Between two looks at the tools of a server that says they change, however seldom it does. */
const LIST_PAUSE_MS = 1_000;
/** How long a call waits for a server that is just not there. */
export const CALL_CONNECT_MS = 5_000;
/** How long tools are still offered to new contexts while their server is being connected to again. */
const REMEMBER_MS = 30_000;

export interface McpLog {
  debug(details: object, message: string): void;
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
}

export interface McpConnectionOptions {
  /** As configured. */
  name: string;
  /** The part of its tools' names that says whose they are. */
  key: string;
  spec: McpServerSpec;
  environment: Readonly<Record<string, string>>;
  clock: Clock;
  log: McpLog;
}

export type ServerCallOutcome =
  | CallOutcome
  | { kind: "not_connected"; reason: string }
  /** It is there, and has no such tool. */
  | { kind: "no_tool" };

/** Own it: call `close`. */
export class McpConnection {
  readonly name: string;
  readonly key: string;
  /** Resolves when the first attempt is over, well or not. */
  readonly settled: Promise<void>;
  readonly #options: McpConnectionOptions;
  /** What the server says may hold its settings; so may the SDK's errors, which quote it. */
  readonly #hide: (text: string) => string;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  readonly #waiting = new Set<() => void>();
  #settle!: () => void;
  #client: McpClient | undefined;
  #tools: ReadonlyMap<string, McpTool> = new Map();
  /** Ends the wait before the next attempt. */
  #hurry: (() => void) | undefined;
  #reason = "it is being connected to";
  #lostAt: number | undefined;
  readonly #lists: Throttle;
  /** The server said that its tools changed since they were listed. */
  #changed = false;
  #relisting: McpClient | undefined;
  #problems = "";

  constructor(options: McpConnectionOptions) {
    this.name = options.name;
    this.key = options.key;
    this.#options = options;
    this.#hide = settingsHider(options.spec);
    this.#lists = new Throttle(options.clock, LIST_RATE);
    this.settled = new Promise((resolve) => {
      this.#settle = resolve;
    });
    this.#running = this.#run();
  }

  get isConnected(): boolean {
    return this.#client !== undefined;
  }

  /** Why it is not connected, when it is not. */
  get reason(): string {
    return this.#reason;
  }

  /** What a new context is offered. */
  get tools(): readonly McpTool[] {
    const isRecent = this.#lostAt !== undefined && this.#options.clock.monotonic() - this.#lostAt < REMEMBER_MS;
    return this.isConnected || isRecent ? [...this.#tools.values()] : [];
  }

  /** @returns the tool; "unknown" while nobody can say whether there is one of that name. */
  find(name: string): McpTool | "unknown" | undefined {
    return this.#tools.get(name) ?? (this.isConnected ? undefined : "unknown");
  }

  /** Calls a tool by the name a model knows it by. Waits for a connection a moment, not longer. Never throws. */
  async call(name: string, args: Record<string, unknown>, signal: AbortSignal): Promise<ServerCallOutcome> {
    for (let isSecond = false; ; isSecond = true) {
      const client = this.#client ?? (await this.#wait(signal));
      if (signal.aborted) return { kind: "aborted" };
      if (client === undefined) return { kind: "not_connected", reason: this.#reason };
      const tool = this.#tools.get(name);
      if (tool === undefined) return { kind: "no_tool" };
      const outcome = await client.call(tool.ownName, args, signal);
      // It was restarted since the last call and has done nothing: the call goes to the next connection.
      if (outcome.kind !== "lost") return outcome;
      if (outcome.reached || isSecond) return { ...outcome, reason: this.#hide(outcome.reason) };
      this.#drop(client, outcome.reason);
    }
  }

  /** Resolves when nothing of the server's connection is left, after 3 s at most. */
  async close(): Promise<void> {
    this.#reason = "this server is ending";
    this.#stop.abort();
    this.#hurry?.();
    for (const wake of this.#waiting) wake();
    await Promise.all([this.#client?.close(), this.#running]);
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    const { clock } = this.#options;
    let failures = 0;
    while (!this.#stop.signal.aborted) {
      const client = await this.#open();
      this.#settle();
      if (client !== undefined) {
        const since = clock.monotonic();
        await untilAborted(client.lost);
        this.#drop(client, client.lostReason);
        await client.close();
        if (this.#stop.signal.aborted) break;
        this.#report("warn", { reason: client.lostReason, said: client.said }, "an MCP server was lost");
        if (clock.monotonic() - since >= STEADY_MS) failures = -1;
      }
      failures += 1;
      if (failures <= 0) continue;
      const isCutShort = await this.#pause(Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (failures - 1)));
      // Tries that calls asked for do not make the next wait longer.
      if (isCutShort) failures -= 1;
    }
    this.#settle();
  }

  async #open(): Promise<McpClient | undefined> {
    const { spec, environment, clock } = this.#options;
    let client: McpClient | undefined;
    try {
      client = await openMcpClient({
        spec,
        environment,
        clock,
        signal: this.#stop.signal,
        onToolsChanged: () => {
          this.#changed = true;
          if (this.#client !== undefined) void this.#relist(this.#client);
        },
        onComplaint: (problem) => this.#report("debug", { problem }, "an MCP server said what makes no sense"),
      });
      this.#changed = false;
      await this.#list(client);
    } catch (error) {
      const reason = this.#hide(reasonOf(error));
      const said = client?.said ?? (error instanceof OpenFailure ? error.said : "");
      await client?.close();
      if (this.#stop.signal.aborted) return undefined;
      // The same failure again and again is worth one line.
      this.#report(
        reason === this.#reason ? "debug" : "warn",
        { reason, said },
        "an MCP server cannot be connected to",
      );
      this.#reason = reason;
      return undefined;
    }
    if (this.#stop.signal.aborted || client.lost.aborted) {
      await client.close();
      return undefined;
    }
    this.#client = client;
    this.#report("info", { tools: this.#tools.size }, "an MCP server is connected");
    for (const wake of this.#waiting) wake();
    if (this.#changed) void this.#relist(client);
    return client;
  }

  #drop(client: McpClient, reason: string): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    this.#lostAt = this.#options.clock.monotonic();
    this.#reason = this.#hide(reason);
  }

  async #list(client: McpClient): Promise<void> {
    const { tools, problems } = judgeTools(this.key, await client.listTools());
    if (client.lost.aborted) throw new Error(client.lostReason);
    this.#tools = new Map(tools.map((tool) => [tool.definition.name, tool]));
    const told = problems.join("\n");
    if (told !== "" && told !== this.#problems) {
      this.#report("warn", { problems }, "tools of an MCP server are left out");
    }
    this.#problems = told;
  }

  /**
   * However often a server says so, its tools are listed once at a time, with a pause between, and seldom when it says
   * so all the time. Never rejects.
   */
  async #relist(client: McpClient): Promise<void> {
    if (this.#relisting === client) return;
    this.#relisting = client;
    try {
      while (this.#changed && this.#client === client) {
        await this.#lists.take(1, client.lost);
        if (this.#client !== client) return;
        this.#changed = false;
        await this.#list(client);
        await this.#options.clock.sleep(LIST_PAUSE_MS, client.lost);
      }
    } catch (error) {
      const reason = reasonOf(error);
      this.#report("debug", { reason }, "the tools of an MCP server could not be listed");
    } finally {
      if (this.#relisting === client) this.#relisting = undefined;
    }
  }

  /** Waits for a connection: until there is one, a moment has passed or the signal aborts. */
  #wait(signal: AbortSignal): Promise<McpClient | undefined> {
    return new Promise((resolve) => {
      const done = () => {
        cancel();
        signal.removeEventListener("abort", done);
        this.#waiting.delete(done);
        resolve(this.#client);
      };
      const cancel = this.#options.clock.after(CALL_CONNECT_MS, done);
      if (signal.aborted || this.#stop.signal.aborted) return done();
      signal.addEventListener("abort", done, { once: true });
      this.#waiting.add(done);
      this.#hurry?.();
    });
  }

  /**
   * A call that waits cuts the pause short, but for its first second: a server that dies at once is no busy loop.
   * @returns whether one did.
   */
  async #pause(ms: number): Promise<boolean> {
    const { clock } = this.#options;
    await clock.sleep(Math.min(ms, FIRST_WAIT_MS), this.#stop.signal);
    if (ms <= FIRST_WAIT_MS || this.#stop.signal.aborted) return false;
    if (this.#waiting.size > 0) return true;
    const early = new AbortController();
    this.#hurry = () => early.abort();
    await clock.sleep(ms - FIRST_WAIT_MS, early.signal);
    this.#hurry = undefined;
    return early.signal.aborted;
  }

  #report(level: keyof McpLog, details: Record<string, string | number | readonly string[]>, message: string): void {
    const shown = Object.entries(details).map(([name, value]) => {
      if (typeof value === "number") return [name, value];
      return [name, typeof value === "string" ? this.#hide(value) : value.map(this.#hide)];
    });
    this.#options.log[level]({ server: this.name, ...Object.fromEntries(shown) }, message);
  }
}

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
