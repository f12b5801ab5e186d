// What a function of the Responses protocol may be called.

import type { NameRules } from "./tool-names.js";

export const RESPONSES_NAMES: NameRules = { refused: /[^A-Za-z0-9_-]/g, first: /^[A-Za-z0-9_-]/, maxLength: 64 };
