// Reads a server's figures as Prometheus would.

export interface Figures {
  /** The value of one series, `name` or `name{label="value"}` with its labels in the order of the text. */
  of(series: string): number | undefined;
  /** Names of the metrics, without the suffixes of histograms, and what each is. */
  readonly types: ReadonlyMap<string, string>;
  /** Label sets of a metric, as they stand in the text. */
  series(name: string): string[];
}

export async function figuresOf(server: { url: string }): Promise<Figures> {
  const response = await fetch(`${server.url}/metrics`);
  const text = await response.text();
  const values = new Map<string, number>();
  const types = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [, metric, type] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? [];
    if (metric !== undefined && type !== undefined) types.set(metric, type);
    const [, series, value] = /^([^#\s][^\s{]*(?:\{.*\})?) (\S+)$/.exec(line) ?? [];
    if (series !== undefined) values.set(series, Number(value));
  }
  return {
    of: (series) => values.get(series),
    types,
    series: (name) => [...values.keys()].filter((key) => key.startsWith(`${name}{`)),
  };
}
