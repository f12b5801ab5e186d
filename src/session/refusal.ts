// Why a Session does not do what it is asked. By itself, since clients know these codes too, without the rest.

/** Codes with which the session layer refuses. `src/http/errors.ts` maps each to a status. */
export type SessionRefusal =
  | "invalid_request"
  | "unknown_model"
  | "ordinal_not_committed"
  | "model_unavailable"
  | "workspace_not_found"
  | "workspace_missing"
  | "not_allowed"
  | "session_not_found"
  | "task_in_progress"
  | "nothing_to_compact"
  | "task_not_found"
  | "approval_not_found"
  | "approval_already_decided"
  | "images_not_supported"
  | "file_not_supported"
  | "too_many_queued"
  | "not_running"
  | "not_pending"
  | "too_many_sessions"
  | "too_many_tasks"
  | "storage_failed"
  | "shutting_down";
