// What one MCP server may cost, whatever it is spoken to over.

/** The longest message, in bytes: a few images fit. */
export const MAX_MESSAGE_BYTES = 10_485_760;
/** How deep the answer to a call may nest: it is worked through with the stack, and indented. */
export const MAX_ANSWER_DEPTH = 200;
/** What the answer to a call may hold in values: each is an object to be made, looked at and written out. */
export const MAX_ANSWER_VALUES = 100_000;
/** The same for a whole list of tools, page by page, and for any other message; both are far smaller when honest. */
export const MAX_LIST_BYTES = 2_097_152;
export const MAX_LIST_VALUES = 50_000;
/** How fast a server is read, in bytes, and what each message costs on top, for it is parsed too. */
export const RATE = { burst: 16_777_216, perSecond: 8_388_608 };
export const MESSAGE_COST = 4_096;
/** How often a list that changes is asked for again: a few times at once, then twice a minute. */
export const LIST_RATE = { burst: 6, perSecond: 1 / 30 };
/** Tools of all servers: providers take 128 in a Request, the built-in ones among them. */
export const MAX_MCP_TOOLS = 116;
