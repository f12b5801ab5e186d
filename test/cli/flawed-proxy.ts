// Between a command and its server: calls that it is told to are never answered, cut, or refused as a proxy does.

import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** What becomes of a call: no answer, an end without one before or after the server had it, a status without a body. */
export type Flaw = "hang" | "cut" | "lost" | number | undefined;

export interface FlawedProxy {
  url: string;
  /** Resolves once a call was left without an answer. */
  hung: Promise<void>;
}

/** Starts a proxy of `target`, until the test ends. */
export async function startFlawedProxy(target: string, flawOf: (call: IncomingMessage) => Flaw): Promise<FlawedProxy> {
  let sayHung = () => {};
  const hung = new Promise<void>((resolve) => {
    sayHung = resolve;
  });
  const proxy = createServer((call, response) => {
    const flaw = flawOf(call);
    if (flaw === "hang") return sayHung();
    if (flaw === "cut") return void response.destroy();
    if (typeof flaw === "number") return void response.writeHead(flaw).end();
    const options = { method: call.method, headers: call.headers };
    const onward = request(new URL(call.url ?? "", target), options, (answer) => {
      if (flaw === "lost") return void response.destroy();
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    call.pipe(onward);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, hung };
}
