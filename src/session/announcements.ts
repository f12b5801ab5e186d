// What the readers of a Session are told besides its messages: how it stands, which approvals are open, which tools
// live. While the Session works for a parent, the parent's side hears of it too.

import type { Channel } from "../channel/channel.js";
import type { Sink, Snapshot, SubscribeOptions } from "../channel/subscription.js";
import { type OmniMessage, toLine } from "../protocol/message.js";
import type { ParentLink } from "./children.js";
import { TaskSpans } from "./task-spans.js";
import { endTag, type TaskStateFacts, taskStateEvent } from "./task-state.js";
import type { ApprovalMode, ApprovalView, TaskView } from "./types.js";

export interface AnnouncementsDeps {
  channel: Channel;
  facts(): Omit<TaskStateFacts, "ended">;
  approvals(): ApprovalView[];
  task(taskId: string): TaskView | undefined;
  /** How the Session stands has changed. */
  onChange(): void;
}

export class Announcements {
  readonly #deps: AnnouncementsDeps;
  readonly #spans: TaskSpans;
  /** The Task that runs for a parent, and the parent's side. */
  #errand: { taskId: string; parent: ParentLink } | undefined;

  constructor(deps: AnnouncementsDeps) {
    this.#deps = deps;
    this.#spans = new TaskSpans(deps.channel);
  }

  /** The parent's mode while the Session works for it. */
  get inheritedMode(): ApprovalMode | undefined {
    return this.#errand?.parent.approvalMode();
  }

  /** From here to the end of this Task the parent hears of everything. */
  followedBy(parent: ParentLink, taskId: string): void {
    this.#errand = { taskId, parent };
  }

  /** A message has been shown. */
  shown(message: OmniMessage): void {
    this.#errand?.parent.shown(message);
  }

  event(event: object): void {
    this.#deps.channel.announce(toLine(event));
    this.#errand?.parent.announced(event);
  }

  /** From here on what is shown is of this Task. */
  begins(taskId: string): void {
    this.#spans.begin(taskId);
  }

  /** How things stand; `endedTaskId` is over at this place. */
  state(endedTaskId?: string): void {
    if (endedTaskId !== undefined) this.#spans.end(endedTaskId);
    this.#deps.channel.announce(
      this.#stateEvent(endedTaskId),
      endedTaskId === undefined ? undefined : endTag(endedTaskId),
    );
    this.#deps.onChange();
    const errand = this.#errand;
    errand?.parent.changed();
    if (endedTaskId === undefined || errand?.taskId !== endedTaskId) return;
    this.#errand = undefined;
    errand.parent.ended(this.#task(endedTaskId));
  }

  follow(sink: Sink, { lastEventId, untilTask }: { lastEventId?: string; untilTask?: string }): void {
    this.#deps.channel.subscribe(sink, {
      ...(lastEventId === undefined ? {} : { lastEventId }),
      snapshot: () => this.#snapshot(untilTask),
      ...(untilTask === undefined ? {} : this.#alone(untilTask)),
    });
  }

  /** One Task and nothing else. */
  #alone(taskId: string): Required<Pick<SubscribeOptions, "span" | "endsAt">> {
    return {
      span: () => ({ ...this.#spans.of(taskId), isOver: this.#task(taskId).state === "ended" }),
      endsAt: (tag) => tag === endTag(taskId),
    };
  }

  #snapshot(untilTask: string | undefined): Snapshot {
    // One that is not known any more neither waits nor runs: its end will not be announced.
    const state = untilTask === undefined ? undefined : this.#task(untilTask).state;
    if (state === "ended") return { events: [this.#stateEvent(untilTask)], over: true };
    // What is asked now is another Task's.
    if (state === "queued") return { events: [this.#stateEvent()] };
    const requests = this.#deps.approvals().map((view) => toLine({ type: "approval_request", ...view }));
    return { events: [this.#stateEvent(), ...requests] };
  }

  #stateEvent(endedTaskId?: string): string {
    const ended = endedTaskId === undefined ? undefined : this.#task(endedTaskId);
    return taskStateEvent({ ...this.#deps.facts(), ended });
  }

  #task(taskId: string): TaskView {
    return this.#deps.task(taskId) ?? { taskId, state: "ended" };
  }
}
