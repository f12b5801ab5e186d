// Whether the arguments of a call fit the schema that an MCP server gave its tool: a call that cannot run is put to no
// person. The server stays the judge. What is refused here it would refuse too, and what cannot be judged here goes to
// it: a schema that does not compile, refers to others, or takes too long.
//
// A schema is foreign code in a way: a pattern may backtrack for ever, references may multiply without end, and the
// validator makes a function of it. So each has a validator of its own, nothing is fetched, and every step has an end.

import { Ajv, type ErrorObject, type Options, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { timeBoxed } from "./time-box.js";

const COMPILE_MS = 200;
const CHECK_MS = 100;
const MAX_PROBLEMS = 8;
const MAX_PROBLEM_CHARS = 200;

/** What is wrong with the arguments, a line each; nothing when they fit, or when that cannot be told here. */
export type ArgumentCheck = (args: Readonly<Record<string, unknown>>) => readonly string[];

/** Compiles at the first call. @param schema as the server gave it, `$schema` and all */
export function argumentCheck(schema: Readonly<Record<string, unknown>>): ArgumentCheck {
  let validate: ValidateFunction | undefined | "none";
  return (args) => {
    try {
      validate ??= compile(schema);
      if (validate === "none") return [];
      const fits = validate;
      const checked = timeBoxed(CHECK_MS, () => fits(args));
      if (checked.kind === "late") validate = "none";
      const errors = fits.errors ?? [];
      fits.errors = null;
      return checked.kind === "done" && checked.value === false ? problemsIn(errors) : [];
    } catch {
      // No stack is deep enough for it, or it is no schema that the validator knows.
      validate = "none";
      return [];
    }
  };
}

const OPTIONS: Options = {
  // Unknown words and formats say nothing.
  strict: false,
  validateFormats: false,
  // A schema is not checked against that of schemas first: one that is wrong does not compile.
  meta: false,
  validateSchema: false,
  addUsedSchema: false,
  inlineRefs: false,
  allErrors: true,
  // Or `{}` would have a `constructor`.
  ownProperties: true,
  multipleOfPrecision: 6,
  logger: false,
  code: { regExp: Object.assign(patternOf, { code: "patternOf" }) },
};

/** A pattern of another dialect must not refuse what its own would take. */
function patternOf(pattern: string, flags: string): RegExp {
  try {
    return new RegExp(pattern, flags);
  } catch {
    return /(?:)/;
  }
}

function compile(schema: Readonly<Record<string, unknown>>): ValidateFunction | "none" {
  const { $schema, ...rest } = schema;
  // The two differ in what they call a tuple.
  const Validator = /draft-0[67]/.test(String($schema)) ? Ajv : Ajv2020;
  const compiled = timeBoxed(COMPILE_MS, () => new Validator(OPTIONS).compile(rest));
  // One that says `$async` answers with a promise.
  return compiled.kind === "done" && !isAsync(compiled.value) ? compiled.value : "none";
}

const isAsync = (validate: ValidateFunction): boolean => "$async" in validate && validate.$async === true;

function problemsIn(errors: readonly ErrorObject[]): string[] {
  const lines = errors.slice(0, MAX_PROBLEMS).map((error) => cut(`${placeOf(error)}: ${wordsOf(error)}`));
  return errors.length > lines.length ? [...lines, `and ${errors.length - lines.length} more`] : lines;
}

function placeOf({ instancePath }: ErrorObject): string {
  const names = instancePath.slice(1, MAX_PROBLEM_CHARS).split("/");
  return names.map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~")).join(".") || "arguments";
}

function wordsOf({ keyword, params, message = "does not fit" }: ErrorObject): string {
  switch (keyword) {
    case "additionalProperties":
      return `${message}, and has ${JSON.stringify(params.additionalProperty)}`;
    case "unevaluatedProperties":
      return `${message}, and has ${JSON.stringify(params.unevaluatedProperty)}`;
    case "enum":
      return `must be one of ${JSON.stringify(params.allowedValues)}`;
    case "const":
      return `must be ${JSON.stringify(params.allowedValue)}`;
    default:
      return message;
  }
}

const cut = (text: string): string => (text.length > MAX_PROBLEM_CHARS ? `${text.slice(0, MAX_PROBLEM_CHARS)}…` : text);
