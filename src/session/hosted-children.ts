// Children as their parent's host makes them and takes them back.

import { type Result, refuse } from "../result.js";
import type { Session } from "./session.js";
import type { HostedChildren } from "./session-deps.js";
import type { CreateSession, SessionRefusal } from "./types.js";

export interface ChildMaker {
  /** Makes a Session that stays in memory until it is let go. */
  make(request: CreateSession): Promise<Result<Session, SessionRefusal>>;
  letGo(childId: string): void;
  remove(childId: string): Promise<unknown>;
  usage: HostedChildren["usage"];
  /** False once the parent was deleted or the server drains. */
  goesOn(): boolean;
  /** Whether this server still permits work outside of the Workspace. */
  allowOutside: boolean;
  onFault(error: unknown): void;
}

export function hostedChildren(maker: ChildMaker): HostedChildren {
  const discard = async (childId: string): Promise<void> => {
    try {
      await maker.remove(childId);
    } catch (error) {
      maker.onFault(error);
      // It is still there.
      maker.letGo(childId);
    }
  };
  return {
    usage: maker.usage,
    letGo: maker.letGo,
    discard,
    spawn: async (request) => {
      const made = await maker.make(maker.allowOutside ? request : { ...request, allowOutsideWorkspace: false });
      if (!made.ok || maker.goesOn()) return made;
      // It was not there yet when its parent's children were stopped.
      await discard(made.value.id);
      return refuse("session_not_found", "the Session ends");
    },
  };
}
