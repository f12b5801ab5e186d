// What the Gemini protocol takes, written down once more and apart from the encoder: each function says what is wrong
// with a request body, by the words of the API's own refusals.

type Json = Record<string, unknown>;
interface Content {
  role: unknown;
  parts: Json[];
}

const KINDS = [
  ...["text", "inlineData", "fileData", "functionCall", "functionResponse"],
  ...["executableCode", "codeExecutionResult"],
];
const BESIDE = ["thought", "thoughtSignature"];
const NAME = /^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$/;

export interface Expectations {
  /** The model refuses a step whose first call has no signature. */
  wantsSignatures: boolean;
  /** Signatures that this model gave; no other may be sent but the documented stand-in. */
  ownSignatures: ReadonlySet<string>;
}

export function violations(body: string, expected: Expectations): string[] {
  const { contents, generationConfig, tools } = JSON.parse(body) as {
    contents: Content[];
    generationConfig?: { thinkingConfig?: Json };
    tools?: { functionDeclarations: Json[] }[];
  };
  return [
    ...ofText(body),
    ...ofTurns(contents),
    ...contents.flatMap(ofParts),
    ...contents.flatMap((content, n) => ofPairing(content, contents[n + 1], contents[n - 1])),
    ...contents.flatMap((content) => ofSignatures(content, expected)),
    ...ofConfig(generationConfig?.thinkingConfig ?? {}),
    ...ofTools(tools?.flatMap(({ functionDeclarations }) => functionDeclarations) ?? []),
  ];
}

function ofText(body: string): string[] {
  return /(?<!\\)(?:\\\\)*\\u[dD][89a-fA-F]/.test(body) ? ["the body is not UTF-8: a lone surrogate"] : [];
}

function ofTurns(contents: readonly Content[]): string[] {
  const found: string[] = [];
  if (contents.length === 0) found.push("contents is not specified");
  contents.forEach(({ role, parts }, n) => {
    const due = n % 2 === 0 ? "user" : "model";
    if (role !== due) found.push(`content ${n} has role ${String(role)}, not ${due}`);
    if (!Array.isArray(parts) || parts.length === 0) found.push(`content ${n} has no parts`);
  });
  if (contents.length % 2 === 0) found.push("the last content is not the user's");
  return found;
}

function ofParts({ role, parts }: Content): string[] {
  return parts.flatMap((part) => {
    const kinds = Object.keys(part).filter((key) => !BESIDE.includes(key));
    const [kind] = kinds;
    if (kinds.length !== 1 || !KINDS.includes(kind as string)) return [`a part of ${kinds.join("+") || "nothing"}`];
    const found: string[] = [];
    const fields = part[kind as string] as Json;
    if (kind === "text" && part.text === "" && part.thoughtSignature === undefined) found.push("an empty text part");
    if (kind === "inlineData" && (fields.data === "" || !/^[a-z]+\/[\w.+-]+$/.test(String(fields.mimeType)))) {
      found.push("inlineData without data or type");
    }
    if (kind === "fileData" && typeof fields.mimeType !== "string") found.push("fileData without a type");
    if (kind === "functionCall" && (!NAME.test(String(fields.name)) || !isObject(fields.args))) {
      found.push("a functionCall with a bad name or args that are no object");
    }
    if (kind === "functionResponse") {
      if (!isObject(fields.response)) found.push("response must be an object");
      else if (Object.keys(fields.response).length === 0) found.push("an empty response");
    }
    const belongs = role === "user" ? ["text", "inlineData", "fileData", "functionResponse"] : KINDS;
    if (!belongs.includes(kind as string) || (role === "model" && kind === "functionResponse")) {
      found.push(`a ${kind} of the ${String(role)}'s`);
    }
    if (role === "user" && BESIDE.some((key) => part[key] !== undefined)) found.push("a thought of the user's");
    return found;
  });
}

/** Responses right behind their calls: as many, in their order, by their names and ids, and nothing before them. */
function ofPairing({ role, parts }: Content, next: Content | undefined, previous: Content | undefined): string[] {
  const calls = of(parts, "functionCall");
  if (role === "user") {
    const answers = of(parts, "functionResponse");
    return answers.length > 0 && of(previous?.parts ?? [], "functionCall").length !== answers.length
      ? ["the number of function responses is not that of the calls before them"]
      : [];
  }
  const ids = calls.map(({ id }) => id).filter((id) => id !== undefined);
  const found = new Set(ids).size === ids.length ? [] : ["two calls of one step share an id"];
  const answers = of((next?.parts ?? []).slice(0, calls.length), "functionResponse");
  const told = (each: Json) => JSON.stringify([each.name, each.id]);
  if (calls.map(told).join() !== answers.map(told).join())
    found.push("calls without their responses right behind them");
  return found;
}

function ofSignatures({ parts }: Content, { wantsSignatures, ownSignatures }: Expectations): string[] {
  const found: string[] = [];
  const calls = parts.filter((part) => part.functionCall !== undefined);
  const isSigned = calls.some((part) => part.thoughtSignature !== undefined);
  if (wantsSignatures && calls.length > 0 && !isSigned) found.push("Function call is missing a thought_signature");
  for (const part of parts) {
    const signature = part.thoughtSignature;
    if (signature === undefined || ownSignatures.has(signature as string)) continue;
    if (signature !== "skip_thought_signature_validator") found.push(`a foreign signature ${String(signature)}`);
    else if (!wantsSignatures || part !== calls[0]) found.push("a stand-in where no signature is wanted");
  }
  return found;
}

function ofConfig({ thinkingLevel, thinkingBudget }: Json): string[] {
  return thinkingLevel !== undefined && thinkingBudget !== undefined ? ["a level and a budget together"] : [];
}

function ofTools(declarations: readonly Json[]): string[] {
  const found: string[] = [];
  const names = declarations.map(({ name }) => String(name));
  for (const name of names) if (!NAME.test(name)) found.push(`Invalid function name ${name}`);
  if (new Set(names).size !== names.length) found.push("Duplicate function declaration");
  for (const { parameters, parametersJsonSchema: schema } of declarations) {
    if (parameters !== undefined) found.push("parameters, whose parser knows few keywords");
    if (schema === undefined) continue;
    if ((schema as Json).type !== "object") found.push("a schema that is not of an object");
    if (/"\$(?:ref|schema|defs)":/.test(JSON.stringify(schema))) found.push("reference to undefined schema");
  }
  return found;
}

const of = (parts: readonly Json[], kind: string): Json[] =>
  parts.filter((part) => part[kind] !== undefined).map((part) => part[kind] as Json);

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);
