// Figures for Prometheus, in a registry of their own: two servers in one process do not mix. What happens often is
// counted in plain numbers elsewhere, which are read here when somebody asks.

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

type Labels<L extends string> = Record<L, string>;

export interface Metrics {
  /** Runs before each answer, so that what several figures have in common is looked up once. */
  beforeAnswer(look: () => void): void;
  /** A figure that is read when somebody asks. */
  gauge(name: string, help: string, read: () => number): void;
  /** The same by one label. */
  gauges(name: string, help: string, label: string, read: () => Readonly<Record<string, number>>): void;
  /** A figure that only grows, counted elsewhere and read when somebody asks. */
  total(name: string, help: string, read: () => number): void;
  /** The same by one label. */
  totals(name: string, help: string, label: string, read: () => Readonly<Record<string, number>>): void;
  /**
   * A figure that only grows. @returns what adds to it.
   * @param known what is there at 0 from the start: nobody sees a series grow that begins with its first event
   */
  counter<L extends string>(
    name: string,
    help: string,
    labels: readonly L[],
    known?: readonly Labels<L>[],
  ): (labels: Labels<L>, by?: number) => void;
  /** How often a value lay below each of `buckets`. @returns what adds a value. */
  histogram<L extends string>(
    name: string,
    help: string,
    buckets: readonly number[],
    labels: readonly L[],
  ): (labels: Labels<L>, value: number) => void;
  /** One request. `seconds` is left out where nothing is to be learnt from it. */
  request(labels: { method: string; route: string; status: string }, seconds: number | undefined): void;
  readonly contentType: string;
  text(): Promise<string>;
}

export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const looks: (() => void)[] = [];
  collectDefaultMetrics({ register: registry });
  const labelNames = ["method", "route", "status"] as const;
  const requests = new Counter({
    name: "omnid_http_requests_total",
    help: "HTTP requests by what was answered; 499: the connection ended before an answer",
    labelNames,
    registers,
  });
  const durations = new Histogram({
    name: "omnid_http_request_duration_seconds",
    help: "Time from a request's arrival to the end of its answer; streams of events are left out",
    labelNames,
    buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60],
    registers,
  });
  return {
    beforeAnswer: (look) => void looks.push(look),
    gauge(name, help, read) {
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(read());
        },
      });
    },
    gauges(name, help, label, read) {
      new Gauge({
        name,
        help,
        labelNames: [label],
        registers,
        collect() {
          for (const [value, figure] of Object.entries(read())) this.set({ [label]: value }, figure);
        },
      });
    },
    total(name, help, read) {
      new Counter({
        name,
        help,
        registers,
        collect() {
          this.reset();
          this.inc(read());
        },
      });
    },
    totals(name, help, label, read) {
      new Counter({
        name,
        help,
        labelNames: [label],
        registers,
        collect() {
          this.reset();
          for (const [value, figure] of Object.entries(read())) this.inc({ [label]: value }, figure);
        },
      });
    },
    counter(name, help, labels, known = []) {
      const counter = new Counter({ name, help, labelNames: labels, registers });
      for (const values of known) counter.inc(values, 0);
      return (values, by = 1) => counter.inc(values, by);
    },
    histogram(name, help, buckets, labels) {
      const histogram = new Histogram({ name, help, labelNames: labels, buckets: [...buckets], registers });
      return (values, value) => histogram.observe(values, value);
    },
    request(labels, seconds) {
      requests.inc(labels);
      if (seconds !== undefined) durations.observe(labels, seconds);
    },
    contentType: registry.contentType,
    text: () => {
      for (const look of looks) look();
      return registry.metrics();
    },
  };
}
