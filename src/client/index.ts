// `omnid/client`: the typed client, for browsers and Node.

export {
  isCompleteModelMessage,
  isEventMessage,
  isModelMessage,
  isPartial,
  isPayload,
  isSessionMeta,
} from "../protocol/guards.js";
export type { CompleteMessage, EventMessage, ModelMessage, OmniMessage } from "../protocol/message.js";
export type * from "../protocol/payloads.js";
export { type Client, createClient, type ImportOptions, type SessionsClient } from "./client.js";
export type { ClientClock } from "./client-clock.js";
export type { Following, FollowOptions } from "./follow.js";
export {
  type FollowingSessions,
  type FollowSessionsOptions,
  type SessionsView,
  withHostEvent,
} from "./follow-sessions.js";
export { slotOf } from "./fragments.js";
export { OmnidError, type OmnidErrorCode } from "./omnid-error.js";
export type { Backoff } from "./retrying.js";
export type { RunOptions, SessionClient, StreamOptions } from "./session-client.js";
export type { ClientOptions } from "./transport.js";
export { emptyView, reduceView } from "./view.js";
export type { FollowStep } from "./view-store.js";
export type * from "./view-types.js";
export type * from "./wire.js";
