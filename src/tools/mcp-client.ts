// One connection to an MCP server, from its opening to its loss. The SDK speaks the protocol; here every wait has an
// end, nothing that a server sends is trusted, and the SDK compiles none of its schemas.
//
// The SDK is loaded when the first server is connected to: who has none does not pay for it.

import { setMaxListeners } from "node:events";
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { z } from "zod";
import type { Clock } from "../clock.js";
import { reasonOf } from "../reason-of.js";
import { VERSION } from "../version.js";
import { httpTransport, networkFault, unreachable } from "./mcp-http.js";
import { MessageGuard } from "./mcp-message.js";
import { type McpResult, mcpResultSchema } from "./mcp-result.js";
import { CLOSED, StdioTransport } from "./mcp-stdio.js";
import { within } from "./within.js";

/** A server may have to be downloaded first (`npx`). */
const OPEN_TIMEOUT_MS = 60_000;
const LIST_TIMEOUT_MS = 30_000;
const MAX_PAGES = 20;
const MAX_LISTED = 1_000;
/** The longest silence during a call, and the longest call that keeps telling its progress. */
export const CALL_SILENCE_MS = 120_000;
export const CALL_MAX_MS = 3_600_000;
const GOODBYE_MS = 500;
const PROBE_MS = 10_000;
/** The SDK has timers of its own; ours end first. */
const NEVER_MS = 2_147_483_647;
const MAX_COMPLAINTS = 5;

export type McpServerSpec =
  | { command: string; args: readonly string[]; env: Readonly<Record<string, string>> }
  | { url: string; headers: Readonly<Record<string, string>> };

export interface McpClientOptions {
  spec: McpServerSpec;
  /** What a process needs to be found; `spec` comes on top. */
  environment: Readonly<Record<string, string>>;
  clock: Clock;
  /** Aborts the opening. */
  signal: AbortSignal;
  onToolsChanged(): void;
  onComplaint(message: string): void;
}

export type CallOutcome =
  | { kind: "answered"; result: McpResult }
  /** The server says that it cannot. */
  | { kind: "refused"; message: string }
  | { kind: "malformed" }
  | { kind: "timeout"; silentMs: number }
  | { kind: "aborted" }
  /** `reached`: the server may have done it. */
  | { kind: "lost"; reason: string; reached: boolean };

/** A connection that did not come about. */
export class OpenFailure extends Error {
  override readonly name = "OpenFailure";
  /** What the server's process wrote last to its standard error; for a log, and only with its settings out of it. */
  readonly said: string;

  constructor(reason: string, said: string) {
    super(reason);
    this.said = said;
  }
}

/**
 * Connects and agrees on the protocol.
 * @throws OpenFailure when that fails or takes too long; nothing of the connection is left then.
 */
export async function openMcpClient(options: McpClientOptions): Promise<McpClient> {
  const { clock, signal } = options;
  const { Client: SdkClient } = await import("@modelcontextprotocol/sdk/client/index.js").catch(() => {
    throw new OpenFailure("the package @modelcontextprotocol/sdk is not installed", "");
  });
  const sdk = new SdkClient(
    { name: "omnid", version: VERSION },
    // The default would compile the schemas of results, each in no bounded time.
    {
      jsonSchemaValidator: {
        getValidator: () => (data) => ({ valid: true, data: data as never, errorMessage: undefined }),
      },
    },
  );
  const client = new McpClient(sdk, options);
  try {
    const transport = await client.transport();
    await within(clock, OPEN_TIMEOUT_MS, [signal], "it did not answer", (limited) =>
      sdk.connect(transport, { signal: limited, timeout: NEVER_MS }),
    );
    return client;
  } catch (error) {
    // The SDK closes what it does not agree with; what that is stands in its error.
    const isTold = client.lost.aborted && client.lostReason !== CLOSED;
    const reason = isTold ? client.lostReason : messageOf(error);
    await client.close();
    throw new OpenFailure(reason, client.said);
  }
}

/** Own it: call `close`. */
export class McpClient {
  readonly #sdk: Client;
  readonly #options: McpClientOptions;
  readonly #lost = new AbortController();
  readonly #guard = new MessageGuard();
  #stdio: StdioTransport | undefined;
  #goodbye: (() => Promise<void>) | undefined;
  #closing: Promise<void> | undefined;
  #complaints = 0;
  #probing: Promise<void> | undefined;

  constructor(sdk: Client, options: McpClientOptions) {
    this.#sdk = sdk;
    this.#options = options;
    // Every answer that is being read listens for it.
    setMaxListeners(0, this.#lost.signal);
    sdk.onclose = () => this.#lose(this.#stdio?.reason ?? CLOSED);
    sdk.onerror = (error) => {
      if (++this.#complaints <= MAX_COMPLAINTS) options.onComplaint(cut(error.message));
    };
    sdk.fallbackNotificationHandler = async ({ method }) => {
      if (method === "notifications/tools/list_changed") options.onToolsChanged();
    };
  }

  /** Aborts when the connection is over. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  get lostReason(): string {
    return String(this.#lost.signal.reason);
  }

  get said(): string {
    return this.#stdio?.said ?? "";
  }

  async transport(): Promise<Transport> {
    const { spec, environment, clock } = this.#options;
    if ("command" in spec) {
      const { command, args, env } = spec;
      const own = { ...environment, ...env };
      this.#stdio = new StdioTransport({ command, args, environment: own, clock, guard: this.#guard });
      return this.#stdio;
    }
    const http = await httpTransport(spec.url, spec.headers, {
      clock,
      guard: this.#guard,
      signal: this.lost,
      onLost: (reason) => this.#lose(reason),
      onDoubt: () => void this.#probe(),
    });
    this.#goodbye = () => http.terminateSession();
    return http as Transport;
  }

  /** @throws when the server does not give its list in time. What stands in the list is for others to judge. */
  async listTools(): Promise<unknown[]> {
    if (this.#sdk.getServerCapabilities()?.tools === undefined) return [];
    const { clock } = this.#options;
    const latest = clock.monotonic() + LIST_TIMEOUT_MS;
    const tools: unknown[] = [];
    this.#guard.beginList();
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES && tools.length < MAX_LISTED && clock.monotonic() <= latest; page++) {
      const params = cursor === undefined ? {} : { cursor };
      const listed = await within(clock, LIST_TIMEOUT_MS, [this.lost], "it did not list its tools", (signal) =>
        this.#sdk.request({ method: "tools/list", params }, listSchema, { signal, timeout: NEVER_MS }),
      );
      tools.push(...listed.tools.slice(0, MAX_LISTED - tools.length));
      cursor = listed.nextCursor;
      if (cursor === undefined) break;
    }
    return tools;
  }

  /** Calls a tool. Never throws; on abort the server is told, and not waited for. */
  async call(name: string, args: Record<string, unknown>, signal: AbortSignal): Promise<CallOutcome> {
    const { clock } = this.#options;
    const own = new AbortController();
    const onAbort = () => own.abort("aborted by the user");
    let silentMs: number | undefined;
    const onTimeout = (ms: number) => () => {
      silentMs = ms;
      own.abort("timed out");
    };
    const cancelLongest = clock.after(CALL_MAX_MS, onTimeout(CALL_MAX_MS));
    let cancelSilence = clock.after(CALL_SILENCE_MS, onTimeout(CALL_SILENCE_MS));
    const onprogress = () => {
      cancelSilence();
      cancelSilence = clock.after(CALL_SILENCE_MS, onTimeout(CALL_SILENCE_MS));
    };
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    try {
      const request = { method: "tools/call" as const, params: { name, arguments: args } };
      const limits = { signal: own.signal, timeout: NEVER_MS, onprogress };
      const result = await this.#sdk.request(request, mcpResultSchema, limits);
      return { kind: "answered", result };
    } catch (error) {
      if (silentMs !== undefined) return { kind: "timeout", silentMs };
      if (signal.aborted) return { kind: "aborted" };
      return await this.#failureOf(error);
    } finally {
      cancelLongest();
      cancelSilence();
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** Resolves when nothing of it is left, after 3 s at most. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { clock } = this.#options;
    const isGone = this.lost.aborted;
    if (this.#goodbye !== undefined && !isGone) {
      let cancel: (() => void) | undefined;
      const enough = new Promise<void>((resolve) => {
        cancel = clock.after(GOODBYE_MS, resolve);
      });
      await Promise.race([this.#goodbye().catch(() => {}), enough]);
      cancel?.();
    }
    this.#lose(CLOSED);
    // After the SDK has let go of the transport, the process may still have to be waited for.
    await this.#sdk.close().catch(() => {});
    await this.#stdio?.close();
  }

  #lose(reason: string): void {
    if (this.#lost.signal.aborted) return;
    this.#lost.abort(reason);
    // Answers every call that waits.
    void this.#sdk.close().catch(() => {});
  }

  async #failureOf(error: unknown): Promise<CallOutcome> {
    const status = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
    // A server that was restarted does not know the connection: 404, and with many 400.
    if (status === 404 || status === 400) {
      await this.#probe();
      if (this.lost.aborted) return { kind: "lost", reason: this.lostReason, reached: false };
    }
    if (isNetworkFault(error)) {
      return { kind: "lost", reason: unreachable(error), reached: !UNREACHED.has(networkFault(error)) };
    }
    if (this.lost.aborted) return { kind: "lost", reason: this.lostReason, reached: true };
    if (error instanceof z.core.$ZodError) return { kind: "malformed" };
    return { kind: "refused", message: reasonOf(error) };
  }

  /** Asks whether it is there and knows us. */
  #probe(): Promise<void> {
    this.#probing ??= this.#ping().finally(() => {
      this.#probing = undefined;
    });
    return this.#probing;
  }

  async #ping(): Promise<void> {
    try {
      await within(this.#options.clock, PROBE_MS, [this.lost], "it does not answer", (signal) =>
        this.#sdk.ping({ signal, timeout: NEVER_MS }),
      );
    } catch (error) {
      // One that answers that it knows no ping is there.
      if (!(error instanceof Error && error.name === "McpError")) this.#lose(messageOf(error));
    }
  }
}

const listSchema = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().optional().catch(undefined) });

/** A server that was not there has done nothing. */
const UNREACHED: ReadonlySet<string> = new Set(["ECONNREFUSED", "ENOTFOUND", "EHOSTUNREACH", "ENETUNREACH"]);

function messageOf(error: unknown): string {
  if (isNetworkFault(error)) return unreachable(error);
  return cut(reasonOf(error));
}

/** What `fetch` rejects with where there is no answer. */
const isNetworkFault = (error: unknown): boolean => error instanceof TypeError && error.cause !== undefined;

const cut = (text: string): string => text.slice(0, 300).replace(/\s+/g, " ");
