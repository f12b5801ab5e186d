// `GET /messages` gives each record with its `ordinal`, and such records can be imported. In the Trace that they come to
// they have places of their own, so the member says nothing there, and would say it louder than ours: of two members of
// one name most readers take the last.

import type { ParsedRecord } from "./jsonl-reader.js";
import { type Span, spansWithout, withoutMember } from "./meta-rewrite.js";

const PLACE = "ordinal";

export const hasForeignPlace = ({ message }: ParsedRecord): boolean => Object.hasOwn(message, PLACE);

export const withoutPlace = (json: string): string => withoutMember(json, PLACE);

export const spansWithoutPlace = (json: string): Span[] => spansWithout(json, PLACE);
