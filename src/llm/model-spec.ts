// One configured model: who serves it, by which protocol, and what it can take.

/** How a model is spoken to. `demo` needs no network. */
export const PROTOCOLS = ["openai-chat", "openai-responses", "anthropic-messages", "gemini", "demo"] as const;
export type Protocol = (typeof PROTOCOLS)[number];

/** US dollars per million tokens. */
export interface ModelCost {
  input?: number;
  output?: number;
  cacheRead?: number;
  cacheWrite?: number;
}

export interface ModelSpec {
  provider: string;
  modelId: string;
  protocol: Protocol;
  /** What comes before the protocol's own path. A query in it is kept. Not used by `demo`. */
  baseUrl: string;
  /** Absent for servers that ask for none. Never leaves the process but in the provider's own header. */
  apiKey?: string;
  contextWindow: number;
  maxOutputTokens?: number;
  /** Takes images. */
  vision: boolean;
  /** Understands a thinking level; without it none is sent. */
  thinking: boolean;
  cost?: ModelCost;
}

/** Names the model for people, and named it alone in `fidelity.from` before `originMark` did. */
export const modelName = (model: Pick<ModelSpec, "provider" | "modelId">): string =>
  `${model.provider}/${model.modelId}`;

/**
 * What `fidelity.from` says: the model and the protocol that it was spoken to by. What a provider needs back verbatim
 * goes back to this model only, and only by this protocol. No provider has white space in its name, so that no mark is
 * taken for a `modelName`.
 */
export const originMark = (model: Pick<ModelSpec, "provider" | "modelId" | "protocol">): string =>
  `${model.protocol} ${modelName(model)}`;

/** Media types of the documents that a protocol carries as they are. */
export const documentTypes = (protocol: Protocol): readonly string[] =>
  protocol === "openai-chat" || protocol === "demo" ? [] : ["application/pdf"];
