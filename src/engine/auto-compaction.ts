// When a Task compacts by itself, and when it does not any more: a compaction that fails or cannot help must not be
// tried again and again. Bounds: one failed compaction by size or turns a Task; none by size in a context that a
// compaction began and whose very first Request was as long again; after a Request that was too long for the provider,
// one compaction and one new try.

import type { CompactionReason } from "../protocol/payloads.js";
import { type CompactionDeps, type CompactionResult, type CompactionSettings, compact } from "./compaction.js";
import type { ContextSize } from "./context.js";

/** The part of the window above which a context is compacted. */
const WINDOW_SHARE = 0.8;

/** @returns why a context of this size is due, or undefined. */
export function compactionDue(
  size: ContextSize,
  settings: Pick<CompactionSettings, "maxContextLength" | "maxSessionTurns">,
  contextWindow: number,
): Extract<CompactionReason, "context" | "turns"> | undefined {
  if (size.turns === 0) return undefined;
  const { maxContextLength, maxSessionTurns } = settings;
  if (maxContextLength >= 0) {
    const threshold = contextWindow > 0 ? Math.min(maxContextLength, WINDOW_SHARE * contextWindow) : maxContextLength;
    const cannotHelp = size.isCompacted && size.leastTokens >= threshold;
    if (size.tokens >= threshold && !cannotHelp) return "context";
  }
  return maxSessionTurns >= 0 && size.turns >= maxSessionTurns ? "turns" : undefined;
}

/** The compactions of one Task. */
export class AutoCompaction {
  readonly #deps: CompactionDeps;
  #hasFailed = false;
  /** The Request at hand has had its compaction. */
  #wasTooLong = false;

  constructor(deps: CompactionDeps) {
    this.#deps = deps;
  }

  /** Called when a Request has committed and all outputs are in. */
  async afterTurn(): Promise<CompactionResult> {
    this.#wasTooLong = false;
    const { context, settings, contextWindow } = this.#deps;
    const due = compactionDue(context.size, settings, contextWindow);
    return due === undefined || this.#hasFailed ? "nothing" : this.#compact(due);
  }

  /** Called when a Request was too long for the provider. @returns `completed` when it may be tried once more. */
  async afterOverflow(): Promise<CompactionResult> {
    if (this.#wasTooLong || this.#deps.settings.maxContextLength < 0) return "nothing";
    this.#wasTooLong = true;
    return this.#compact("context");
  }

  async #compact(reason: CompactionReason): Promise<CompactionResult> {
    const result = await compact(this.#deps, reason);
    if (result === "failed") this.#hasFailed = true;
    return result;
  }
}
