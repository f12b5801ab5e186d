// @ts-check
// Calls of the HTTP API. What is refused is thrown as an ApiError with the server's own words. A 401 asks for a token,
// once for all calls that wait, and then tries again.

const TOKEN_KEY = "omnid-token";

export class ApiError extends Error {
  /** @param {number} status @param {string} code @param {string} message */
  constructor(status, code, message) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
  }
}

/**
 * @typedef {object} Api
 * @property {(path: string, init?: RequestInit) => Promise<Response>} open answers that are not 2xx throw
 * @property {<T>(method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<T>} call
 * @property {() => string} token
 */

/**
 * @param {(isWrong: boolean) => Promise<string>} askToken resolves with what the person enters
 * @returns {Api}
 */
export function connectApi(askToken) {
  /** @type {Promise<string> | undefined} */
  let asking;
  const token = () => sessionStorage.getItem(TOKEN_KEY) ?? "";

  /** @type {Api["open"]} */
  const open = async (path, init = {}) => {
    for (;;) {
      const used = token();
      const headers = new Headers(init.headers);
      if (used !== "") headers.set("authorization", `Bearer ${used}`);
      const response = await fetch(`/api${path}`, { ...init, headers, cache: "no-store" });
      if (response.ok) return response;
      if (response.status !== 401) throw await refusal(response);
      await response.body?.cancel();
      // Another call may have got a new one meanwhile.
      if (token() !== used) continue;
      asking ??= askToken(used !== "").finally(() => {
        asking = undefined;
      });
      sessionStorage.setItem(TOKEN_KEY, await asking);
    }
  };

  return {
    token,
    open,
    call: async (method, path, body, headers = {}) => {
      const response = await open(path, {
        method,
        ...(body === undefined
          ? { headers }
          : { body: JSON.stringify(body), headers: { ...headers, "content-type": "application/json" } }),
      });
      return response.status === 204 || response.headers.get("content-length") === "0"
        ? undefined
        : await response.json();
    },
  };
}

/** @param {Response} response */
async function refusal(response) {
  try {
    const { error } = await response.json();
    const details = (error.details ?? []).map((/** @type {{ path: string, message: string }} */ { path, message }) =>
      path === "" ? message : `${path}: ${message}`,
    );
    return new ApiError(response.status, error.code, [error.message, ...details].join(" – "));
  } catch {
    // A proxy's page, or nothing: the status is all there is.
    return new ApiError(
      response.status,
      "http",
      `The server answered ${response.status} ${response.statusText}`.trim(),
    );
  }
}

/** What went wrong, as a sentence for the page. @param {unknown} error */
export function inWords(error) {
  if (error instanceof ApiError) {
    const text = error.message === "" ? `The server answered ${error.status}` : error.message;
    return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
  }
  // fetch gives a TypeError for everything below HTTP.
  if (error instanceof TypeError) return "The server cannot be reached.";
  return error instanceof Error ? error.message : String(error);
}
