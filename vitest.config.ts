import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";

// Commands run in a login shell, which reads the profile of whoever runs the tests. It shall say nothing here.
const home = process.env.OMNID_TEST_HOME ?? mkdtempSync(join(tmpdir(), "omnid-test-home-"));
process.env.OMNID_TEST_HOME = home;

export default defineConfig({
  test: {
    env: { HOME: home },
    globalSetup: ["test/support/build.ts"],
    include: ["test/**/*.test.ts"],
    testTimeout: 50_000,
    hookTimeout: 50_000,
    // What is waited for comes when it comes; one second is no claim, and a busy machine takes longer.
    expect: { poll: { timeout: 20_000 } },
    pool: "forks",
    // Most of the time a test waits: for a process, a browser, a clock of its own.
    maxWorkers: 2,
  },
});
