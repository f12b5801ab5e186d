// `omnid doctor`: one tiny request to each model that is configured, a connection to each MCP server, and what came back.
// A key is never printed: not by us, and not where a provider repeats it.

import { type Clock, systemClock } from "../clock.js";
import type { Config } from "../config.js";
import type { LLMOutcome } from "../engine/ports.js";
import { createLLMClient } from "../llm/client.js";
import { type ModelSpec, modelName } from "../llm/model-spec.js";
import { presentable } from "../llm/outcome.js";
import type { RegisteredModel } from "../model-registry.js";
import { userText } from "../protocol/builders.js";
import { isPayload } from "../protocol/guards.js";
import type { ErrorKind, RequestError } from "../protocol/payloads.js";
import { examineMcp } from "./doctor-mcp.js";
import { printable } from "./printable.js";

export interface DoctorOptions {
  /** `provider/modelId` of those to ask; empty for all that are available. */
  only: readonly string[];
  /** Takes each line for the person who asked. */
  out: (line: string) => void;
  clock?: Clock;
}

/** The least that every provider takes. */
const OUTPUT_TOKENS = 16;
const MAX_SHOWN = 60;

/**
 * Asks each model for a word, all at once, and prints a line for each in the order of the configuration; then the same
 * for MCP servers.
 * @returns the exit code: 0 when all answered, 1 when one did not or is not there.
 */
export async function doctor(config: Config, options: DoctorOptions): Promise<number> {
  const out = (line: string) => options.out(printable(presentable(line, config.secrets)));
  const { models } = config.models;
  const isWanted = (model: RegisteredModel) =>
    options.only.length === 0 || options.only.includes(modelName(model.spec));
  const unknown = options.only.filter((name) => !models.some(({ spec }) => modelName(spec) === name));
  const counts = { answered: 0, failed: unknown.length, skipped: 0 };
  for (const name of unknown) out(`fail  ${name}: no such model is configured; \`omnid models\` lists those that are`);
  const wanted = models.filter(isWanted);
  const asked = wanted.map((model) => (model.available ? ask(model.spec, config, options) : undefined));
  for (const [place, { spec, reason }] of wanted.entries()) {
    const answer = await asked[place];
    if (answer === undefined) {
      // Whoever names a model wants it to work.
      counts[options.only.length > 0 ? "failed" : "skipped"] += 1;
      out(`${options.only.length > 0 ? "fail" : "skip"}  ${modelName(spec)}: ${reason ?? "not available"}`);
    } else {
      counts[hasAnswered(answer.outcome) ? "answered" : "failed"] += 1;
      out(lineOf(spec, answer));
    }
  }
  out(`${counts.answered} answered, ${counts.failed} failed, ${counts.skipped} not available`);
  // Whoever names models asks about these alone.
  const lostServers = options.only.length === 0 ? await examineMcp(config, { clock: options.clock, out }) : 0;
  return counts.failed + lostServers === 0 ? 0 : 1;
}

interface Answer {
  outcome: LLMOutcome;
  text: string;
  tookMs: number;
}

async function ask(spec: ModelSpec, config: Config, { clock = systemClock() }: DoctorOptions): Promise<Answer> {
  let ids = 0;
  const client = createLLMClient(
    { ...spec, maxOutputTokens: OUTPUT_TOKENS },
    {
      clock,
      newId: () => `doctor${ids++}`,
      requestTimeoutMs: config.requestTimeoutMs,
      demoDelayMs: 0,
    },
  );
  const began = clock.now();
  const stream = client.stream({
    sessionId: "omnid-doctor",
    systemPrompt: "",
    tools: [],
    messages: [userText(clock.iso(), "Answer with one word: ready.")],
    thinkingLevel: "default",
    isCallIdTaken: () => false,
    signal: new AbortController().signal,
  });
  let text = "";
  for (;;) {
    const read = await stream.next();
    if (read.done === true) return { outcome: read.value, text, tookMs: clock.now() - began };
    for (const message of read.value) if (isPayload(message, "text")) text += message.payload.text;
  }
}

/** Some servers refuse a limit that a model's thinking used up, but only once it has thought: key and model are good. */
const hasAnswered = ({ status, error }: LLMOutcome): boolean =>
  status === "completed" || (error?.kind === "invalid_request" && /output limit was reached/i.test(error.message));

function lineOf(spec: ModelSpec, { outcome, text, tookMs }: Answer): string {
  const took = tookMs < 10_000 ? `${tookMs} ms` : `${Math.round(tookMs / 1000)} s`;
  if (!hasAnswered(outcome)) return `fail  ${modelName(spec)}: ${complaint(outcome)} (after ${took})`;
  const { cache_read, cache_write, output } = outcome.usage;
  const words = text.trim().replace(/\s+/g, " ");
  // A model that thinks first may not get to words.
  const said = words === "" ? `nothing within ${OUTPUT_TOKENS} tokens` : `"${words.slice(0, MAX_SHOWN)}"`;
  return `ok    ${modelName(spec)}: said ${said} in ${took} (${cache_read + cache_write} tokens in, ${output} out)`;
}

function complaint({ status, error }: LLMOutcome): string {
  if (error === undefined) return status;
  const http = error.http_status === undefined ? "" : `, HTTP ${error.http_status}`;
  return `${error.kind}${http}: ${error.message.replace(/[.\s]+$/, "")}. ${adviceFor(error)}`;
}

const ADVICE: Record<ErrorKind, string> = {
  auth: "Check the key, and that it may use this model",
  invalid_request: "Check modelId and protocol, and that the account is in good standing",
  context_overflow: "Check contextWindow and maxOutputTokens",
  content_filter: "The provider refuses even this; try another model",
  rate_limit: "The account is at its limit; wait, or ask for a higher one",
  overloaded: "The provider has no room just now; try again later",
  network: "Check baseUrl, the network, and that the server is up",
  timeout: "The provider failed or took too long; try again, or raise OMNID_REQUEST_TIMEOUT_MS",
  malformed: "What answers there does not speak the protocol; check protocol and baseUrl",
  storage: "Check the disk",
  unknown: "See what the provider says above",
};

const adviceFor = ({ kind, http_status }: RequestError): string =>
  http_status === 404 ? "Nothing is there by that name; check modelId, protocol and baseUrl" : ADVICE[kind];
