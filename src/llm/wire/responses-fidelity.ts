// What an answer's items leave in `fidelity`, and how it is read back. Members are the provider's own, verbatim, and
// ours beside them: `from` says whose they are; `before` holds the items of hosted tools that came right before this one;
// `replaces` names reasoning that was closed before its encrypted form had come.

import type { Fidelity } from "../../protocol/payloads.js";
import { asList, asRecord, asText, type JsonRecord } from "./json.js";

const OURS = new Set(["from", "before", "replaces"]);

/** True for a reasoning item that its provider may be able to read back. */
export const isReadable = (item: JsonRecord): boolean =>
  asText(item.encrypted_content) !== "" || asText(item.signature) !== "";

/** A reasoning item as `fidelity` keeps it. Raw thoughts are kept twice only where a signature may cover them. */
export function reasoningMembers(item: JsonRecord): Fidelity {
  if (!isReadable(item)) return { ...named(asText(item.id)), summary: asList(item.summary) };
  const { type: _type, status: _status, content, ...members } = item;
  for (const [name, value] of Object.entries(members)) if (value === null || OURS.has(name)) delete members[name];
  return asList(content).length > 0 ? { ...members, content } : members;
}

const named = (id: string): Fidelity => (id === "" ? {} : { id });

/**
 * The reasoning item to send back, or undefined where the provider could not read it: nothing is stored there, and it
 * would look for a stored one by its id.
 * @param signed the provider reads signed reasoning that is not encrypted.
 */
export function reasoningItem(fidelity: Fidelity | undefined, signed: boolean): JsonRecord | undefined {
  if (fidelity === undefined || (asText(fidelity.encrypted_content) === "" && !(signed && isReadable(fidelity)))) {
    return undefined;
  }
  const members = Object.entries(fidelity).filter(([name]) => !OURS.has(name));
  return { type: "reasoning", summary: [], ...Object.fromEntries(members) };
}

/**
 * Calls that the client has to run, or a person to allow: without an output they are refused, and we have none. The
 * first three have messages of their own in the context.
 */
const NOT_HOSTED = new Set([
  ...["message", "reasoning", "function_call", "item_reference", "custom_tool_call", "local_shell_call", "shell_call"],
  ...["apply_patch_call", "computer_call", "tool_search_call", "mcp_approval_request", "mcp_approval_response"],
]);

/** The hosted tools' items that go back right before this message's own; undefined where one may not go back. */
export function itemsBefore(fidelity: Fidelity | undefined): (JsonRecord | undefined)[] {
  return asList(fidelity?.before).map((value) => {
    const item = asRecord(value);
    const type = asText(item?.type);
    return type === "" || NOT_HOSTED.has(type) || type.endsWith("_output") ? undefined : item;
  });
}
