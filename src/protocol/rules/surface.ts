// What stands where. The Trace holds no fragments. The stream holds no Trace-only record: no Prompt, no steering, no
// session_meta, but for a child's, which is the first message of the child's chain inside its parent's stream.

import { isPartial, isSessionMeta } from "../guards.js";
import { isUserInput } from "./facts.js";
import type { Mode, Rule } from "./rule.js";

export function surface(mode: Mode, isChild: boolean, joined: boolean): Rule {
  let isFirst = !joined;
  return {
    name: "surface",
    push(message, { report }) {
      const beginsHere = isFirst;
      isFirst = false;
      if (mode === "trace") {
        if (isPartial(message)) report(`${message.payload.type} in a Trace`);
        else if (beginsHere && !isSessionMeta(message)) report("a Trace does not begin with session_meta");
      } else if (isSessionMeta(message)) {
        if (!isChild) report("session_meta on the main stream");
        else if (!beginsHere) report("session_meta is not a child's first message");
      } else if (isUserInput(message)) report("user input on the stream");
      else if (isChild && beginsHere) report("a child's first message is not its session_meta");
    },
  };
}
