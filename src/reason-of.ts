/** What was thrown, in its own words: the end of a sentence that says what could not be done. */
export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
