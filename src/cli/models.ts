// `omnid models`: the models that the server would know, which of them can be used, and why the others cannot.

import type { Config } from "../config.js";
import { viewOf } from "../model-registry.js";
import { printable, printableJson } from "./printable.js";
import { table } from "./table.js";

export interface ModelsOptions {
  /** As `GET /models` answers. */
  json?: boolean;
  /** Takes each line for the person who asked. */
  out: (line: string) => void;
}

/** Prints the models as a table, the default one marked with a star. Never prints an address or a key. @returns 0. */
export function models({ models: { models: known, defaultModel } }: Config, options: ModelsOptions): number {
  const views = known.map(viewOf);
  if (options.json === true) {
    options.out(printableJson(JSON.stringify({ models: views, defaultModel }, undefined, 2)));
    return 0;
  }
  const rows = views.map(({ provider, modelId, protocol, contextWindow, available, reason }) => {
    const isDefault = provider === defaultModel.provider && modelId === defaultModel.modelId;
    const usable = available ? "yes" : `no: ${reason ?? "not available"}`;
    return [isDefault ? "*" : "", `${provider}/${modelId}`, protocol, contextWindow.toLocaleString("en"), usable];
  });
  const head = ["", "MODEL", "PROTOCOL", "CONTEXT", "AVAILABLE"];
  for (const line of table([head, ...rows], [CONTEXT])) options.out(printable(line));
  options.out("* is what a Session gets unless it names another.");
  return 0;
}

/** The column of numbers, which stand at the right. */
const CONTEXT = 3;
