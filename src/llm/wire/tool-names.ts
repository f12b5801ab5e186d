// Tool names in a protocol's alphabet. MCP servers name their tools as they like; a provider refuses the whole Request
// for one name that it does not take.

import { createHash } from "node:crypto";

export interface NameRules {
  /** Matches each character that the protocol refuses; global. */
  refused: RegExp;
  /** Matches a character that a name may begin with. */
  first: RegExp;
  maxLength: number;
}

const HASH_LENGTH = 8;

/**
 * The name under which a tool goes out: its own where the protocol takes it. The same in every Request, whatever other
 * tools there are, and never that of another tool: a changed name carries a hash of the original.
 */
export function wireToolName(name: string, rules: NameRules): string {
  const plain = name.replace(rules.refused, "_");
  const begun = rules.first.test(plain) ? plain : `_${plain}`;
  if (begun === name && name.length <= rules.maxLength) return name;
  const hash = createHash("sha256").update(name).digest("hex").slice(0, HASH_LENGTH);
  return `${begun.slice(0, rules.maxLength - HASH_LENGTH - 1)}_${hash}`;
}

/** The way back, among the tools of the Request. A name that is none of theirs stays as the model wrote it. */
export function ownToolName(wireName: string, toolNames: readonly string[], rules: NameRules): string {
  if (toolNames.includes(wireName)) return wireName;
  return toolNames.find((name) => wireToolName(name, rules) === wireName) ?? wireName;
}
