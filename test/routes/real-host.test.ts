import { startRealServer } from "../support/real-server.js";
import { describeRoutes } from "./contract.js";

describeRoutes("the Sessions of a data directory", async () => {
  const { url } = await startRealServer();
  // `/run` asks for a decision; a long one that was allowed by mode runs until it is aborted.
  return { url, says: { quick: "hello", holds: `/think ${"on ".repeat(20_000)}`, asks: "/run echo hi" } };
});
