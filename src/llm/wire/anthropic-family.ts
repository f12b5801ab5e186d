// What a model of the Messages protocol takes, by its name. A field that a family does not know is a 400 for the whole
// conversation, so an unknown Claude is asked only for what every new one understands, and models of others, which
// speak the protocol as it first was, for a budget.

import type { ThinkingLevel } from "../../engine/ports.js";
import type { ModelSpec } from "../model-spec.js";
import type { JsonRecord } from "./json.js";
import { fittingBudget } from "./thinking-budget.js";

type AskedLevel = Exclude<ThinkingLevel, "default">;

/** How a family is asked to think. */
type Style =
  | { kind: "none" }
  | { kind: "budget"; interleaved: boolean }
  /** @property off what turns thinking off: the field, its absence, or nothing (then the least effort is asked for) */
  | { kind: "adaptive"; display: boolean; off: "disabled" | "absent" | "never"; efforts: Record<AskedLevel, string> };

export interface AnthropicFamily {
  style: Style;
  /** Checks signatures, so that reasoning without one cannot go back. */
  signs: boolean;
  /** The output limit that is asked for where the configuration names none; the protocol wants one. */
  maxTokens: number;
}

export interface AskedThinking {
  fields: JsonRecord;
  /** Thinking is turned off: past reasoning must not go out either. */
  isOff: boolean;
  betas: readonly string[];
}

const EFFORTS = { none: "low", low: "low", medium: "medium", high: "high", xhigh: "xhigh", max: "max" } as const;
const BUDGETS = { low: 2048, medium: 8192, high: 16_384, xhigh: 32_768, max: 65_536 } as const;
/** The protocol's least budget, in tokens. */
const MIN_BUDGET = 1024;
const INTERLEAVED = "interleaved-thinking-2025-05-14";

export function anthropicFamily(model: Pick<ModelSpec, "modelId" | "contextWindow">): AnthropicFamily {
  const name = model.modelId.toLowerCase();
  if (!name.includes("claude")) {
    const maxTokens = Math.max(1, Math.min(8192, Math.floor(model.contextWindow / 2)));
    return { style: { kind: "budget", interleaved: false }, signs: false, maxTokens };
  }
  const { line, version } = claudeVersion(name);
  return { style: claudeStyle(line, version), signs: true, maxTokens: claudeMaxTokens(line, version) };
}

/** @param maxTokens the output limit that is asked for; a budget must be below it. */
export function askForThinking(family: AnthropicFamily, level: ThinkingLevel, maxTokens: number): AskedThinking {
  const { style } = family;
  if (level === "default" || style.kind === "none") return { fields: {}, isOff: false, betas: [] };
  if (style.kind === "adaptive") return askAdaptive(style, level);
  if (level === "none") return { fields: { thinking: { type: "disabled" } }, isOff: true, betas: [] };
  const budget_tokens = fittingBudget(level, BUDGETS[level], MIN_BUDGET, maxTokens);
  if (budget_tokens === undefined) return { fields: {}, isOff: false, betas: [] };
  return {
    fields: { thinking: { type: "enabled", budget_tokens } },
    isOff: false,
    betas: style.interleaved ? [INTERLEAVED] : [],
  };
}

function askAdaptive(style: Extract<Style, { kind: "adaptive" }>, level: AskedLevel): AskedThinking {
  if (level === "none" && style.off !== "never") {
    return { fields: style.off === "disabled" ? { thinking: { type: "disabled" } } : {}, isOff: true, betas: [] };
  }
  const output_config = { effort: style.efforts[level] };
  if (level === "none") return { fields: { output_config }, isOff: false, betas: [] };
  const thinking = style.display ? { type: "adaptive", display: "summarized" } : { type: "adaptive" };
  return { fields: { thinking, output_config }, isOff: false, betas: [] };
}

/** Major and minor as one number (4.5 is 405); undefined for a Claude whose name says none. */
function claudeVersion(name: string): { line: string; version: number | undefined } {
  // A date behind the name has more digits than a version.
  const now = /claude-([a-z]+)-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/.exec(name);
  if (now !== null) return { line: now[1] ?? "", version: Number(now[2]) * 100 + Number(now[3] ?? 0) };
  const old = /claude-(\d)(?:[-.](\d{1,2}))?(?!\d)(?:-([a-z]+))?/.exec(name);
  if (old !== null) return { line: old[3] ?? "", version: Number(old[1]) * 100 + Number(old[2] ?? 0) };
  return { line: "", version: undefined };
}

function claudeStyle(line: string, version: number | undefined): Style {
  if (version !== undefined && version < 307) return { kind: "none" };
  if (version !== undefined && version <= 405) return { kind: "budget", interleaved: version >= 400 };
  // Between high and max the first of them had no step, and the cheaper neighbour is what nobody regrets.
  const efforts = version === 406 ? { ...EFFORTS, xhigh: "high" } : EFFORTS;
  return { kind: "adaptive", display: version !== 406, off: claudeOff(line, version), efforts };
}

function claudeOff(line: string, version: number | undefined): "disabled" | "absent" | "never" {
  if (version === 406) return "disabled";
  if (version === 407 || version === 408) return "absent";
  // Some of the later ones refuse to be silenced; these are known not to.
  return version === 500 && (line === "opus" || line === "sonnet" || line === "haiku") ? "disabled" : "never";
}

function claudeMaxTokens(line: string, version: number | undefined): number {
  if (version === undefined) return 32_000;
  if (version < 305) return 4096;
  if (version < 307) return 8192;
  return line === "opus" && version < 405 ? 32_000 : 64_000;
}
