// Where the page is, from the path of its address.

/**
 * The path without the slash at its end, to put `/api/…` behind.
 * It begins with one slash at most: two would make a host of what follows, which would be sent the token.
 */
export const basePath = (pathname: string): string => pathname.replace(/^\/+/, "/").replace(/\/[^/]*$/, "");
