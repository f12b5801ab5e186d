// Who may come in: the Host check against DNS rebinding, the Origin check against other sites' pages, and tokens.

import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { type Config, isLoopback, type Token } from "../config.js";
import type { Owner } from "../session/types.js";
import { HttpError } from "./errors.js";

interface Authority {
  /** Lower case, without brackets and without the root dot. */
  name: string;
  port: string | undefined;
}

export interface Access {
  /** @throws HttpError when the request was meant for another host, as a rebound name would make it. */
  checkHost(request: IncomingMessage): void;
  /** @throws HttpError when a page of another site makes a request that changes something. */
  checkOrigin(request: IncomingMessage): void;
  /** @returns whose request it is. @throws HttpError without a valid token, while any is configured. */
  authenticate(request: IncomingMessage, queryToken: string | undefined): Owner;
}

export function createAccess(config: Pick<Config, "host" | "tokens" | "allowedHosts" | "corsOrigins">): Access {
  const allowed = [config.host, ...config.allowedHosts].map((host) =>
    parseAuthority(isIP(host) === 6 ? `[${host}]` : host),
  );
  const tokens = config.tokens.map((token) => ({ owner: token.owner, digest: digestOf(token.secret) }));
  const listed = new Set(config.corsOrigins);

  const isAllowed = (text: string, localAddress: string | undefined): boolean => {
    const asked = parseAuthority(text);
    if (asked === undefined) return false;
    // The address that this very connection came in on: no name, so nothing that could have been rebound.
    if (isLoopback(asked.name) || (isIP(asked.name) !== 0 && sameAddress(asked.name, localAddress))) return true;
    return allowed.some((each) => each?.name === asked.name && (each.port === undefined || each.port === asked.port));
  };

  return {
    checkHost(request) {
      const hosts = valuesOf(request, "host");
      const target = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(request.url ?? "")?.[1];
      const named = target === undefined ? hosts : [...hosts, target];
      const address = request.socket.localAddress;
      if (hosts.length === 1 && named.every((host) => isAllowed(host, address))) return;
      throw new HttpError("host_not_allowed", "this server does not answer to that host; see OMNID_ALLOWED_HOSTS");
    },
    checkOrigin(request) {
      if (/^(GET|HEAD|OPTIONS)$/.test(request.method ?? "")) return;
      for (const origin of valuesOf(request, "origin")) {
        if (!listed.has(origin) && !isOwnOrigin(origin, request.headers.host)) {
          throw new HttpError("origin_not_allowed", "a page of this origin may not change anything; see CORS_ORIGINS");
        }
      }
    },
    authenticate(request, queryToken) {
      if (tokens.length === 0) return null;
      const presented = bearerOf(request) ?? queryToken;
      const owner = presented === undefined ? undefined : ownerOf(presented, tokens);
      if (owner !== undefined) return owner;
      const hint = presented === undefined ? "" : ', error="invalid_token"';
      throw new HttpError("unauthorized", "a valid token is needed: Authorization: Bearer <token>", {
        headers: { "www-authenticate": `Bearer realm="omnid"${hint}` },
      });
    },
  };
}

/** @returns the parts of `name`, `name:port`, `[v6]` or `[v6]:port`, or undefined when it is none of them. */
function parseAuthority(text: string): Authority | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([a-zA-Z0-9._-]+))(?::(\d{1,5}))?$/.exec(text);
  if (match === null) return undefined;
  const [, v6, plain, port] = match;
  if (v6 !== undefined && isIP(v6) !== 6) return undefined;
  return { name: (v6 ?? plain ?? "").toLowerCase().replace(/\.$/, ""), port };
}

function sameAddress(name: string, localAddress: string | undefined): boolean {
  return name === localAddress?.toLowerCase() || `::ffff:${name}` === localAddress?.toLowerCase();
}

// Node keeps the first of several equal headers; a second one may be what a proxy before us looked at.
function valuesOf(request: IncomingMessage, name: string): string[] {
  const raw = request.rawHeaders;
  return raw.filter((_, index) => index % 2 === 1 && raw[index - 1]?.toLowerCase() === name);
}

// A proxy may speak TLS in our place, so the scheme is not compared; the host is, and it has been checked.
function isOwnOrigin(origin: string, host: string | undefined): boolean {
  const match = /^https?:\/\/([^/]+)$/i.exec(origin);
  return match !== null && host !== undefined && match[1]?.toLowerCase() === host.toLowerCase();
}

function bearerOf(request: IncomingMessage): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? "")?.[1];
}

// Digests are of one length, and every token is compared: the time says nothing about which was near.
function ownerOf(presented: string, tokens: readonly { owner: Token["owner"]; digest: Buffer }[]): string | undefined {
  const digest = digestOf(presented);
  let owner: string | undefined;
  for (const token of tokens) if (timingSafeEqual(token.digest, digest)) owner = token.owner;
  return owner;
}

function digestOf(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}
