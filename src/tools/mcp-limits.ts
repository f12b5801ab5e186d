// What one MCP server may cost, whatever it is spoken to over.

/** The longest message, in bytes: a few images fit. */
export const MAX_MESSAGE_BYTES = 10_485_760;
/** How fast a server is read, in bytes, and what each message costs on top, for it is parsed too. */
export const RATE = { burst: 16_777_216, perSecond: 8_388_608 };
export const MESSAGE_COST = 4_096;
/** Tools of all servers: providers take 128 in a Request, the built-in ones among them. */
export const MAX_MCP_TOOLS = 116;
