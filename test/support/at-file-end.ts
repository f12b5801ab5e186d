// What a whole test file shares is given back when the file is over. A hook that is registered while another hook runs
// is never called, so the one below stands here, at import, and works through what was left with it.

import { afterAll } from "vitest";
import type { AtEnd } from "./server.js";

const works: (() => Promise<void>)[] = [];

afterAll(async () => {
  const faults: unknown[] = [];
  // The last to come is the first to go.
  for (let work = works.pop(); work !== undefined; work = works.pop())
    await work().catch((error) => faults.push(error));
  if (faults.length > 0) throw new AggregateError(faults, faults.map(String).join("\n"));
});

/** As `onTestFinished`, for what is started in `beforeAll`. */
export const atFileEnd: AtEnd = (work) => void works.push(work);
