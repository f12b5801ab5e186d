import { describe, expect, test } from "vitest";
import { httpFailure, inBandFailure, networkFailure, presentable, statusOf } from "../../src/llm/outcome.js";
import { ToolCallIds } from "../../src/llm/tool-call-ids.js";

const http = (status: number, body: unknown = "", headers: Record<string, string> = {}) =>
  httpFailure({ status, headers, body: typeof body === "string" ? body : JSON.stringify(body) }, 1_000_000);

describe("HTTP refusals", () => {
  test.each([
    [401, "", "auth"],
    [403, { error: { type: "permission_error", message: "no" } }, "auth"],
    [403, { error: { code: "unsupported_country_region_territory", message: "not here" } }, "invalid_request"],
    [403, "<html>blocked</html>", "invalid_request"],
    [400, { code: "bad", error: "Incorrect API key provided: xx" }, "auth"],
    [400, { error: { message: "invalid token in JSON body" } }, "invalid_request"],
    [400, { error: { code: "context_length_exceeded", message: "too much" } }, "context_overflow"],
    [400, { error: { message: "This model's maximum context length is 4096 tokens" } }, "context_overflow"],
    [400, { error: { message: "max_tokens is too large: 99999" } }, "invalid_request"],
    [400, { error: { code: "content_filter", message: "filtered" } }, "content_filter"],
    [400, { detail: [{ msg: "field required" }] }, "invalid_request"],
    [413, "Payload Too Large", "invalid_request"],
    [413, { error: { message: "prompt is too long: 3 tokens > 2 maximum" } }, "context_overflow"],
    [402, "", "invalid_request"],
    [404, { error: { code: "model_not_found", message: "no such model" } }, "invalid_request"],
    [415, "", "invalid_request"],
    [422, { detail: "extra fields not permitted" }, "invalid_request"],
    [429, { error: { code: "insufficient_quota", message: "pay" } }, "invalid_request"],
    [429, { error: { code: "rate_limit_exceeded", message: "slow" } }, "rate_limit"],
    [429, "", "rate_limit"],
    [408, "", "timeout"],
    [500, { error: { type: "api_error", message: "oops" } }, "timeout"],
    [502, "<html><body>Bad Gateway</body></html>", "timeout"],
    [504, "", "timeout"],
    [524, "", "timeout"],
    [503, "", "overloaded"],
    [529, { error: { type: "overloaded_error" } }, "overloaded"],
    [302, "", "unknown"],
  ])("F17: %i %j is %s", (status, body, kind) => {
    const { error } = http(status, body);
    expect(error).toMatchObject({ kind, http_status: status });
    expect(error.message).not.toBe("");
  });

  test("the words of an error are found in every shape that it comes in", () => {
    expect(http(400, { error: { message: "a" } }).error.message).toBe("a");
    expect(http(400, { error: "b" }).error.message).toBe("b");
    expect(http(400, { detail: "c" }).error.message).toBe("c");
    expect(http(400, { message: "d" }).error.message).toBe("d");
    expect(http(400, [{ error: { message: "e" } }]).error.message).toBe("e");
    expect(http(400, "<html><h1>f</h1> g</html>").error.message).toBe("f g");
    const routed = { error: { message: "Provider returned error", metadata: { raw: "h" } } };
    expect(http(400, routed).error.message).toBe("Provider returned error: h");
    expect(http(500).error.message).toBe("HTTP 500 with no explanation");
  });

  test("F17: the wait is retry-after-ms, else retry-after in seconds or as a date, else the body's", () => {
    expect(http(429, "", { "retry-after-ms": "1500", "retry-after": "9" }).retryAfterMs).toBe(1500);
    expect(http(429, "", { "retry-after": "7" }).retryAfterMs).toBe(7000);
    expect(http(429, "", { "retry-after": new Date(1_000_000 + 30_000).toUTCString() }).retryAfterMs).toBe(30_000);
    expect(http(429, "", { "retry-after": "Thu, 01 Jan 1970 00:00:00 GMT" }).retryAfterMs).toBe(0);
    const body = { error: { code: 429, details: [{ "@type": "RetryInfo", retryDelay: "37.5s" }] } };
    expect(http(429, body).retryAfterMs).toBe(37_500);
    expect(http(429, "", { "retry-after": "999999999" }).retryAfterMs).toBe(999_999_999_000);
    for (const odd of ["-5", "soon", "", "NaN"])
      expect(http(429, "", { "retry-after": odd }).retryAfterMs).toBeUndefined();
  });
});

describe("errors inside an answer", () => {
  test.each([
    [{ error: { type: "server_error", message: "x" } }, "timeout"],
    [{ error: { type: "overloaded_error", message: "x" } }, "overloaded"],
    [{ error: { code: "rate_limit_exceeded", message: "x" } }, "rate_limit"],
    [{ error: { type: "invalid_request_error", code: "tool_use_failed", message: "x" } }, "invalid_request"],
    [{ error: { type: "invalid_request_error", message: "maximum context length is 5" } }, "context_overflow"],
    [{ error: { type: "authentication_error", code: "invalid_request_error", message: "x" } }, "auth"],
    [{ error: { code: 429, message: "x" } }, "rate_limit"],
    [{ error: { code: "503", message: "x" } }, "overloaded"],
    [{ error: { status: "UNAVAILABLE", code: 503, message: "x" } }, "overloaded"],
    [{ error: { status: "INTERNAL", message: "x" } }, "timeout"],
    [{ error: "something odd" }, "unknown"],
    ["plain words", "unknown"],
    [{ error: {} }, "unknown"],
  ])("%j is %s", (value, kind) => {
    const { error } = inBandFailure(value);
    expect(error.kind).toBe(kind);
    expect(error.message).not.toBe("");
    expect(error.http_status).toBeUndefined();
  });
});

describe("the network", () => {
  const coded = (code: string) => Object.assign(new Error("it broke"), { code });
  test.each([
    ["ECONNREFUSED", "network"],
    ["ECONNRESET", "network"],
    ["ENOTFOUND", "network"],
    ["UND_ERR_SOCKET", "network"],
    ["UND_ERR_CONNECT_TIMEOUT", "network"],
    ["UND_ERR_BODY_TIMEOUT", "timeout"],
    ["HPE_INVALID_CONSTANT", "malformed"],
    ["ERR_INVALID_URL", "invalid_request"],
  ])("%s is %s", (code, kind) => {
    expect(networkFailure(coded(code)).error.kind).toBe(kind);
    expect(networkFailure(new Error("fetch failed", { cause: coded(code) })).error.kind).toBe(kind);
  });
});

test("the kind alone decides the status, and with it what the engine does next", () => {
  for (const kind of ["auth", "invalid_request", "context_overflow", "content_filter", "unknown"] as const) {
    expect(statusOf(kind)).toBe("failed");
  }
  for (const kind of ["rate_limit", "overloaded", "network", "timeout"] as const)
    expect(statusOf(kind)).toBe("timeout");
  expect(statusOf("malformed")).toBe("malformed");
});

test("a key never stays in a message, wherever the provider put it and wherever it was cut", () => {
  expect(presentable("Bearer sk-secret; key sk-secret.", ["sk-secret", undefined])).toBe("Bearer ***; key ***.");
  expect(presentable("a b c", ["a"])).toBe("a b c");
  for (let kept = 4; kept < 9; kept++) {
    expect(presentable(`key ${"sk-secret".slice(0, kept)}`, ["sk-secret"])).toBe("key ***");
  }
  expect(presentable("sk-secret".repeat(7000), ["sk-secret"])).not.toContain("sk-");
});

test("an explanation longer than a person reads is cut", () => {
  expect(presentable(http(500, "x".repeat(65_536)).error.message, []).length).toBe(1001);
  // Nothing but tags that never close must not cost quadratic time.
  expect(http(500, "<".repeat(65_536)).error.kind).toBe("timeout");
});

describe("tool call ids", () => {
  test("a source of ids that repeats itself still gives different ids", () => {
    const ids = new ToolCallIds(
      (id) => id === "call_same",
      () => "same",
    );
    const made = [ids.accept(""), ids.accept("no good"), ids.accept("x".repeat(65))].map(
      ({ toolCallId }) => toolCallId,
    );
    expect(new Set(made).size).toBe(3);
    for (const id of made) expect(id).toMatch(/^call_same_\d$/);
  });

  test("a plain new id is kept to the letter, the second time it is not", () => {
    const ids = new ToolCallIds(
      () => false,
      () => "n",
    );
    expect(ids.accept("functions.add:0")).toEqual({ toolCallId: "functions.add:0" });
    expect(ids.accept("functions.add:0")).toEqual({ toolCallId: "call_n", providerCallId: "functions.add:0" });
  });
});
