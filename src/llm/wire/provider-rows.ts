// Which row of a table is about a model's provider. A host says more than a name that someone chose.

import type { ModelSpec } from "../model-spec.js";

export interface ProviderRow {
  /** Lower case, as they stand in a configuration. */
  names: readonly string[];
  /** Each with all its subdomains. */
  hosts: readonly string[];
}

export function providerRow<Row extends ProviderRow>(
  rows: readonly Row[],
  model: Pick<ModelSpec, "provider" | "baseUrl">,
): Row | undefined {
  const host = URL.canParse(model.baseUrl) ? new URL(model.baseUrl).hostname.toLowerCase() : "";
  const name = model.provider.toLowerCase();
  return (
    rows.find(({ hosts }) => hosts.some((known) => host === known || host.endsWith(`.${known}`))) ??
    rows.find(({ names }) => names.includes(name))
  );
}
