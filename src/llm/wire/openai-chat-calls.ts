// Puts tool calls together from the fragments of a chat answer. Servers disagree about what names a call: `index`,
// `id`, both, neither, or the same index for all. Names are never glued together; the first one stands.

import type { Fidelity, StopReason } from "../../protocol/payloads.js";
import type { ToolCallSegment } from "../../protocol/segment.js";
import { asRecord, asText, isBlank, isObjectText } from "./json.js";
import { type NameRules, ownToolName } from "./tool-names.js";
import type { DecoderContext } from "./wire.js";

/** What every server of this protocol takes as the name of a function. */
export const CHAT_NAMES: NameRules = { refused: /[^a-zA-Z0-9_-]/g, first: /^[a-zA-Z0-9_-]/, maxLength: 64 };

interface Call {
  segment: ToolCallSegment;
  index: number | undefined;
  id: string;
  name: string;
  extra: unknown;
  /** How much of the arguments was there when they were last found not to be whole. */
  looked: number;
}

interface Fragment {
  index: number | undefined;
  id: string;
  name: string;
  args: string;
  extra: unknown;
  /** Not the first entry of its delta. */
  later: boolean;
}

/** The tool calls of one answer, in order of their first appearance. */
export class ChatCalls {
  readonly #context: DecoderContext;
  readonly #calls: Call[] = [];
  /** Those that are not ended. */
  readonly #open = new Set<Call>();
  readonly #byIndex = new Map<number, Call>();
  readonly #byId = new Map<string, Call>();
  #problem: string | undefined;

  constructor(context: DecoderContext) {
    this.#context = context;
  }

  get count(): number {
    return this.#calls.length;
  }

  /** What makes the calls undecodable, once something does. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** @param beforeOpen runs before a call takes its place among the segments. */
  push(entries: readonly unknown[], beforeOpen: () => void): void {
    entries.forEach((entry, position) => {
      const fragment = readFragment(entry, position > 0);
      if (fragment === undefined) return;
      const call = this.#find(fragment) ?? this.#begin(fragment, beforeOpen);
      this.#apply(call, fragment);
    });
  }

  /** Ends the calls whose arguments are whole; called when a later segment begins. */
  closeWhole(): void {
    for (const call of this.#open) {
      const { length } = call.segment.content;
      // Looked at again only when there is more of it: else every later segment would read all of it once more.
      if (call.name === "" || length === call.looked) continue;
      call.looked = length;
      if (isObjectText(call.segment.content)) this.#close(call);
    }
  }

  /** True when some call's arguments are neither an object nor left out. */
  get anyBroken(): boolean {
    return this.#calls.some(({ segment }) => !isBlank(segment.content) && !isObjectText(segment.content));
  }

  /** Ends all calls of an answer that failed. */
  closeAll(stop: StopReason): void {
    for (const call of this.#open) this.#close(call, stop);
  }

  /**
   * Ends all calls of an answer that is complete.
   * @param cut the answer was cut off: a call whose arguments are not whole is closed as `malformed`. Only the last
   *   one can have been cut before its first argument.
   */
  finish(cut: boolean): void {
    for (const call of this.#open) {
      const { content } = call.segment;
      const whole = isObjectText(content) || (isBlank(content) && call !== this.#calls.at(-1));
      // Called without a name it is still a call: its output tells the model so. With nothing at all it is noise.
      if (call.id !== "" || !isBlank(content)) this.#fix(call);
      this.#close(call, cut && !whole ? "malformed" : undefined);
    }
  }

  #find(fragment: Fragment): Call | undefined {
    const { index, id, name } = fragment;
    const sameId = id === "" ? undefined : this.#byId.get(id);
    if (index === undefined) {
      if (id !== "") return sameId ?? this.#adoptable();
      const last = this.#calls.at(-1);
      if (last === undefined || (fragment.later && name !== "")) return undefined;
      return startsAnother(last, fragment) ? undefined : last;
    }
    const known = this.#byIndex.get(index);
    // An index that grows with every fragment of one call: the id holds it together, and no name comes again.
    if (known === undefined) return name === "" ? sameId : undefined;
    if (sameId !== undefined && sameId.index === index) return sameId;
    if (id !== "" && known.id !== "" && id !== known.id) return name === "" ? known : undefined;
    return id === "" && startsAnother(known, fragment) ? undefined : known;
  }

  /** A call that was opened without an id takes the first id that comes without an index, unless it is whole. */
  #adoptable(): Call | undefined {
    const last = this.#calls.at(-1);
    return last !== undefined && last.id === "" && !isObjectText(last.segment.content) ? last : undefined;
  }

  #begin(fragment: Fragment, beforeOpen: () => void): Call {
    beforeOpen();
    const segment = this.#context.writer.openToolCall();
    const call: Call = { segment, index: fragment.index, id: "", name: "", extra: undefined, looked: 0 };
    this.#calls.push(call);
    this.#open.add(call);
    if (fragment.index !== undefined) this.#byIndex.set(fragment.index, call);
    return call;
  }

  #apply(call: Call, fragment: Fragment): void {
    if (call.name === "") call.name = fragment.name;
    if (call.id === "" && fragment.id !== "") {
      call.id = fragment.id;
      this.#byId.set(fragment.id, call);
    }
    if (fragment.extra !== undefined) call.extra = fragment.extra;
    if (call.id !== "") this.#identify(call);
    this.#append(call, fragment.args);
  }

  #append(call: Call, args: string): void {
    const { segment } = call;
    if (args === "") return;
    // Some servers end by sending the whole call once more.
    if (args === segment.content && isObjectText(args)) return;
    if (!segment.ended) segment.append(args);
    else if (!isBlank(args)) this.#problem = `arguments of ${call.name} went on after their end`;
  }

  /** The id is fixed here: no message of a call goes out before. Without a name it is not a call yet. */
  #identify(call: Call): void {
    if (call.name !== "") this.#fix(call);
  }

  #fix(call: Call): void {
    if (call.segment.identified) return;
    const { toolCallId, providerCallId } = this.#context.ids.accept(call.id);
    const fidelity: Fidelity = {};
    if (providerCallId !== undefined) fidelity.provider_call_id = providerCallId;
    if (call.extra !== undefined) fidelity.extra_content = call.extra;
    if (Object.keys(fidelity).length > 0) call.segment.setFidelity({ ...fidelity, from: this.#context.from });
    call.segment.identify(ownToolName(call.name, this.#context.toolNames ?? [], CHAT_NAMES), toolCallId);
  }

  #close(call: Call, stop?: StopReason): void {
    this.#identify(call);
    this.#open.delete(call);
    call.segment.end(stop);
  }
}

function readFragment(entry: unknown, later: boolean): Fragment | undefined {
  const call = asRecord(entry);
  if (call === undefined) return undefined;
  const fn = asRecord(call.function) ?? {};
  const given = fn.arguments;
  return {
    index: typeof call.index === "number" ? call.index : undefined,
    id: asText(call.id),
    name: asText(fn.name),
    args: asRecord(given) === undefined ? asText(given) : JSON.stringify(given),
    extra: call.extra_content ?? undefined,
    later,
  };
}

/** With nothing else to tell calls apart: a second name after whole arguments is a second call. */
function startsAnother(known: Call, fragment: Fragment): boolean {
  const { name, args, index } = fragment;
  if (name === "" || known.name === "") return false;
  const { content } = known.segment;
  if (name !== known.name) return isObjectText(content) || (index === undefined && isBlank(content));
  return !isBlank(args) && args !== content && isObjectText(content);
}
