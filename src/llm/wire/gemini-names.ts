// What a function of Gemini's may be called.

import type { NameRules } from "./tool-names.js";

export const GEMINI_NAMES: NameRules = { refused: /[^A-Za-z0-9_.:-]/g, first: /^[A-Za-z_]/, maxLength: 64 };
