// Token counts: a total is the sum of the three parts, and the Session's counts grow by exactly the Request's. A reader
// of the stream may have missed what came before it and a compaction's own usage; the Trace holds all of it from zero.

import { isPayload } from "../guards.js";
import type { TokenCounts } from "../payloads.js";
import { type Mode, quote, type Rule } from "./rule.js";

const FIELDS = ["cache_read", "cache_write", "output", "total"] as const;

export function usage(mode: Mode, joined: boolean): Rule {
  let before: TokenCounts | undefined =
    mode === "trace" && !joined ? { cache_read: 0, cache_write: 0, output: 0, total: 0 } : undefined;
  let mayHaveMissed = false;
  return {
    name: "usage",
    push(message, { report }) {
      if (mode === "stream" && isPayload(message, "compaction_begin")) mayHaveMissed = true;
      if (!isPayload(message, "token_usage")) return;
      const { session, request } = message.payload;
      for (const [name, counts] of [["session", session] as const, ["request", request] as const]) {
        const sum = counts.cache_read + counts.cache_write + counts.output;
        if (counts.total !== sum) report(`${name}.total is ${counts.total}, the sum of its parts ${sum}`);
        if ((counts.cache_creation ?? 0) > counts.cache_write)
          report(`${name}.cache_creation is larger than cache_write`);
      }
      const isExact = before !== undefined && !mayHaveMissed;
      for (const field of FIELDS) {
        const least = (before?.[field] ?? 0) + request[field];
        if (isExact ? session[field] === least : session[field] >= least) continue;
        report(`session.${field} is ${quote(session[field])}, expected ${isExact ? "" : "at least "}${least}`);
        break;
      }
      before = session;
      mayHaveMissed = false;
    },
  };
}
