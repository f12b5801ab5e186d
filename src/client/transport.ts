// One HTTP call: where to, with which token, and what its answer means. An answer that is not 2xx is thrown as an
// OmnidError, and so is no answer at all; an abort is thrown as the signal's own reason.

import { type ClientClock, platformClock } from "./client-clock.js";
import { OmnidError, refusalOf } from "./omnid-error.js";

/** How often one call has `renewToken` asked: a person may mistype, a program that is refused so often has no token. */
const MAX_RENEWALS = 5;

export interface ClientOptions {
  /** Where the server is, such as `http://127.0.0.1:8420`, a prefix of a proxy included; `""` is the page's own origin. */
  baseUrl: string;
  /** Bearer token; a function is asked before every call. */
  token?: string | undefined | (() => string | undefined | Promise<string | undefined>);
  /**
   * Called when the server answers 401, once for all calls that wait, with the token that it refused. The token that it
   * resolves with is used until `token` gives another one; undefined lets the calls fail, and so does the fifth token that
   * is refused to one call.
   */
  renewToken?: (refused: string | undefined) => Promise<string | undefined>;
  /** Left out: the platform's. */
  fetch?: typeof globalThis.fetch;
  clock?: ClientClock;
}

export interface Call {
  method?: "GET" | "POST" | "PATCH" | "DELETE";
  /** Below `/api`, its parts encoded. */
  path: string;
  query?: Record<string, string | number | boolean | undefined>;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent as it is, with this type. */
  raw?: { type: string; body: ReadableStream<Uint8Array> | Blob | string };
  headers?: Record<string, string | undefined>;
  signal?: AbortSignal | undefined;
}

export interface Transport {
  readonly clock: ClientClock;
  /** The answer, its body not read. */
  open(call: Call): Promise<Response>;
  /** The answer's JSON; undefined where it has no body. */
  json<T>(call: Call): Promise<T>;
}

export function createTransport(options: ClientOptions): Transport {
  const { clock = platformClock } = options;
  const send = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
  const base = `${options.baseUrl.replace(/\/+$/, "")}/api`;
  /** A token that replaces another, for as long as the caller still has that one. */
  let renewed: { from: string | undefined; to: string } | undefined;
  let renewing: Promise<string | undefined> | undefined;
  const givenToken = async () => (typeof options.token === "function" ? await options.token() : options.token);
  const currentToken = async () => {
    const given = await givenToken();
    return renewed !== undefined && renewed.from === given ? renewed.to : given;
  };

  /** @returns whether another try has another token. */
  const renew = async (refused: string | undefined): Promise<boolean> => {
    if (options.renewToken === undefined) return false;
    renewing ??= options.renewToken(refused).finally(() => {
      renewing = undefined;
    });
    const token = await renewing;
    if (token === undefined || token === refused) return false;
    renewed = { from: await givenToken(), to: token };
    return true;
  };

  /** @returns the answer, or what it refuses. */
  const ask = async (call: Call, token: string | undefined): Promise<Response | OmnidError> => {
    const url = `${base}${call.path}${queryOf(call.query)}`;
    const response = await answer(send, url, initOf(call, token), call.signal);
    return response.ok ? response : refusalOf(response, clock.now());
  };

  const open = async (call: Call): Promise<Response> => {
    let isOtherTried = false;
    let renewals = 0;
    for (;;) {
      const token = await currentToken();
      const outcome = unsendable(token) ?? (await ask(call, token));
      if (!(outcome instanceof OmnidError)) return outcome;
      // A body that is a stream is used up.
      if (outcome.status !== 401 || call.raw !== undefined) throw outcome;
      // Another call may have got a new one meanwhile. Once: a `token` may give another one each time.
      if (!isOtherTried && (await currentToken()) !== token) {
        isOtherTried = true;
        continue;
      }
      if (renewals === MAX_RENEWALS || !(await renew(token))) throw outcome;
      renewals += 1;
    }
  };

  return {
    clock,
    open,
    json: async <T>(call: Call) => {
      const response = await open(call);
      const text = await textOf(response, call.signal);
      if (text === "") return undefined as T;
      return parsed<T>(text, response.status);
    },
  };
}

/** An answer's JSON, or an OmnidError: whatever stands between may have cut it. */
export function parsed<T>(text: string, status: number): T {
  try {
    return JSON.parse(text) as T;
  } catch (cause) {
    throw new OmnidError("unreadable", "the server's answer is no JSON", { status, cause });
  }
}

/** A token that no header can carry is no token of any server. */
function unsendable(token: string | undefined): OmnidError | undefined {
  if (token === undefined || /^[\t\x20-\x7e\x80-\xff]*$/.test(token)) return undefined;
  return new OmnidError("unauthorized", "the token holds characters that no header can carry", { status: 401 });
}

async function answer(
  send: typeof globalThis.fetch,
  url: string,
  init: RequestInit,
  signal: AbortSignal | undefined,
): Promise<Response> {
  try {
    return await send(url, init);
  } catch (cause) {
    throw broken(cause, signal);
  }
}

async function textOf(response: Response, signal: AbortSignal | undefined): Promise<string> {
  try {
    return await response.text();
  } catch (cause) {
    throw broken(cause, signal);
  }
}

/** What a connection that failed is to the caller. */
export function broken(cause: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted) return signal.reason;
  if (cause instanceof OmnidError) return cause;
  return new OmnidError("network", "the server cannot be reached", { cause });
}

function initOf({ method = "GET", body, raw, headers, signal }: Call, token: string | undefined): RequestInit {
  const sent = new Headers();
  for (const [name, value] of Object.entries(headers ?? {})) if (value !== undefined) sent.set(name, value);
  if (token !== undefined && token !== "") sent.set("authorization", `Bearer ${token}`);
  const type = raw?.type ?? (body === undefined ? undefined : "application/json");
  if (type !== undefined) sent.set("content-type", type);
  const content = raw?.body ?? (body === undefined ? undefined : JSON.stringify(body));
  // Node sends a stream only in half duplex, and wants to be told.
  const duplex = raw?.body instanceof ReadableStream ? { duplex: "half" as const } : {};
  const init: RequestInit & { cache: "no-store" } = {
    method,
    headers: sent,
    cache: "no-store",
    ...(content === undefined ? {} : { body: content }),
    ...(signal === undefined ? {} : { signal }),
    ...duplex,
  };
  return init;
}

function queryOf(query: Call["query"]): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) if (value !== undefined) search.set(name, String(value));
  const text = search.toString();
  return text === "" ? "" : `?${text}`;
}
