// Figures for Prometheus, in a registry of their own: two servers in one process do not mix.

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

export interface Metrics {
  /** A figure that is read when somebody asks. */
  gauge(name: string, help: string, read: () => number): void;
  /** A figure that only grows. @returns what adds to it. */
  counter<L extends string>(
    name: string,
    help: string,
    labels: readonly L[],
  ): (labels: Record<L, string>, by?: number) => void;
  /** One answered request. `seconds` is left out for a stream, whose length says nothing about the server. */
  request(labels: { method: string; route: string; status: string }, seconds: number | undefined): void;
  readonly contentType: string;
  text(): Promise<string>;
}

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const labelNames = ["method", "route", "status"] as const;
  const requests = new Counter({
    name: "omnid_http_requests_total",
    help: "Answered HTTP requests",
    labelNames,
    registers: [registry],
  });
  const durations = new Histogram({
    name: "omnid_http_request_duration_seconds",
    help: "Time from a request's arrival to the end of its answer; streams are left out",
    labelNames,
    buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60],
    registers: [registry],
  });
  return {
    gauge(name, help, read) {
      new Gauge({
        name,
        help,
        registers: [registry],
        collect() {
          this.set(read());
        },
      });
    },
    counter(name, help, labels) {
      const counter = new Counter({ name, help, labelNames: labels, registers: [registry] });
      return (values, by = 1) => counter.inc(values, by);
    },
    request(labels, seconds) {
      requests.inc(labels);
      if (seconds !== undefined) durations.observe(labels, seconds);
    },
    contentType: registry.contentType,
    text: () => registry.metrics(),
  };
}
