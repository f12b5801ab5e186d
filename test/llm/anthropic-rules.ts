// The rules of the Messages protocol for what a client sends, written down from its documentation and from the 400s
// that people report. A body that breaks one would be refused, and with it the Session, for good.

export type Block = Record<string, unknown> & { type: string };
export interface Body {
  model: string;
  max_tokens: number;
  system?: Block[];
  tools?: (Record<string, unknown> & { name: string; input_schema: Record<string, unknown> })[];
  thinking?: { type: string; budget_tokens?: number };
  messages: { role: string; content: Block[] }[];
}

const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const ID = /^[A-Za-z0-9_-]+$/;
const MEDIA = new Set(["image/jpeg", "image/png", "image/gif", "image/webp"]);
const isThinking = ({ type }: Block): boolean => type === "thinking" || type === "redacted_thinking";
const isServerUse = ({ type }: Block): boolean => type.endsWith("_use") && type !== "tool_use";
const isBlank = (text: unknown): boolean => typeof text !== "string" || text.trim() === "";

/** Everything that the API would refuse in this body, a line for each. */
export function brokenRules(body: Body, json: string): string[] {
  const broken: string[] = [];
  const rule = (holds: boolean, name: string) => {
    if (!holds) broken.push(name);
  };
  rule(Number.isInteger(body.max_tokens) && body.max_tokens >= 1, "max_tokens is a positive number");
  const budget = body.thinking?.budget_tokens;
  rule(budget === undefined || (budget >= 1024 && budget < body.max_tokens), "1024 <= budget < max_tokens");
  rule(!/\\ud[89a-f]/i.test(json.replaceAll("\\\\", "")), "no lone surrogate");
  rule(count(body, "cache_control") <= 4, "at most four cache marks");
  for (const tool of body.tools ?? []) {
    rule(NAME.test(tool.name), "a tool's name is in the alphabet");
    rule(tool.input_schema.type === "object", "a schema describes an object");
    rule(!["oneOf", "anyOf", "allOf"].some((key) => key in tool.input_schema), "no alternatives at a schema's top");
  }
  rule(
    (body.system ?? []).every(({ text }) => !isBlank(text)),
    "no empty system block",
  );
  rule(body.messages[0]?.role === "user", "the first message is the user's");
  const ids = new Set<unknown>();
  for (const [n, { role, content }] of body.messages.entries()) {
    rule(role !== body.messages[n - 1]?.role, "roles take turns");
    rule(content.length > 0, "no empty message");
    for (const block of content) broken.push(...blockRules(block, role));
    const before = n === 0 ? [] : (body.messages[n - 1]?.content ?? []);
    if (role === "user") broken.push(...resultRules(content, before));
    else broken.push(...answerRules(content, body.messages[n + 1]?.content, ids));
  }
  broken.push(...lastRules(body));
  return broken;
}

function blockRules(block: Block, role: string): string[] {
  const broken: string[] = [];
  const rule = (holds: boolean, name: string) => {
    if (!holds) broken.push(name);
  };
  const users = ["text", "image", "document", "tool_result"];
  const isUsersOnly = users.includes(block.type) && block.type !== "text";
  rule(role === "assistant" ? !isUsersOnly : users.includes(block.type), `a ${block.type} of ${role}`);
  if (block.type === "text") rule(!isBlank(block.text), "no empty text");
  if (isThinking(block)) rule(!("cache_control" in block), "no mark on thinking");
  if (block.type === "thinking") rule(!isBlank(block.signature), "thinking is signed");
  if (block.type === "redacted_thinking") rule(!isBlank(block.data), "redacted thinking has data");
  if (block.type === "image") {
    const source = block.source as Record<string, string>;
    const whole = source.type === "url" || (MEDIA.has(source.media_type ?? "") && source.data !== "");
    rule(whole, "an image is of a known type");
  }
  if (block.type === "tool_use") {
    rule(ID.test(String(block.id)) && NAME.test(String(block.name)), "a call's id and name are in the alphabet");
    const { input } = block;
    rule(typeof input === "object" && input !== null && !Array.isArray(input), "input is an object");
  }
  if (block.type === "tool_result") {
    const content = Array.isArray(block.content) ? (block.content as Block[]) : [{ type: "text", text: block.content }];
    rule(content.length > 0, "a result is not empty");
    for (const inner of content) broken.push(...blockRules(inner as Block, "user"));
    const isText = content.every(({ type }) => type === "text");
    rule(block.is_error !== true || isText, "an error holds text only");
  }
  return broken;
}

/** Results answer the calls of the message before: each once, in front of everything else. */
function resultRules(content: readonly Block[], before: readonly Block[]): string[] {
  const calls = before.filter(({ type }) => type === "tool_use").map(({ id }) => id);
  const results = content.filter(({ type }) => type === "tool_result").map(({ tool_use_id }) => tool_use_id);
  const broken: string[] = [];
  if (JSON.stringify(calls) !== JSON.stringify(results)) broken.push("every call is answered once, in order");
  if (content.slice(0, results.length).some(({ type }) => type !== "tool_result")) broken.push("results come first");
  return broken;
}

function answerRules(content: readonly Block[], next: readonly Block[] | undefined, ids: Set<unknown>): string[] {
  const broken: string[] = [];
  for (const { id } of content.filter(({ type }) => type === "tool_use")) {
    if (ids.has(id)) broken.push("a call's id is used once");
    ids.add(id);
    if (next === undefined) broken.push("a call is answered");
  }
  const last = content.at(-1);
  if (last !== undefined && isThinking(last)) broken.push("an answer does not end with thinking");
  const uses = content.filter(isServerUse).map(({ id }) => id);
  const results = content.filter(({ type }) => type.endsWith("_tool_result")).map(({ tool_use_id }) => tool_use_id);
  if (results.some((id) => !uses.includes(id))) broken.push("a server tool's result has its call");
  if (next !== undefined && uses.some((id) => !results.includes(id)))
    broken.push("a server tool's call has its result");
  return broken;
}

function lastRules({ messages, thinking }: Body): string[] {
  const broken: string[] = [];
  const [answer, last] = messages.slice(-2);
  const final = messages.at(-1);
  const pauses =
    final?.content.some(({ type }) => type.endsWith("_tool_result") || type === "server_tool_use") ?? false;
  if (final?.role === "assistant" && !pauses) broken.push("the last message is the user's, or a pause");
  const isLoop = last?.content[0]?.type === "tool_result";
  if (thinking?.type === "enabled" && isLoop && !answer?.content.some(isThinking)) {
    broken.push("with thinking, the answer that outputs go back to has some");
  }
  if (thinking?.type === "disabled" && messages.some(({ content }) => content.some(isThinking))) {
    broken.push("without thinking there is none");
  }
  return broken;
}

function count(value: unknown, key: string): number {
  if (typeof value !== "object" || value === null) return 0;
  return Object.entries(value).reduce((sum, [name, inner]) => sum + (name === key ? 1 : count(inner, key)), 0);
}
