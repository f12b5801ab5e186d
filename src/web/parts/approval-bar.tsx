// Calls that wait for a person. The first is also answered by keyboard; each stays where it is until it is decided.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Approval } from "../../client/index.js";
import { decide } from "../actions.js";
import { type Asked, answerName, approvalName, askedTogether } from "../asked.js";
import { now, selectedId, view } from "../state.js";
import { visibleText } from "../visible-text.js";
import { useRead, useShortcuts } from "./approval-keys.js";
import { Arguments } from "./arguments.js";
import { IsAsked } from "./box.js";
import { focusPrompt } from "./focus.js";

const NONE: readonly Approval[] = [];
const keyOf = ({ sessionId, toolCall }: Approval): string => JSON.stringify([sessionId, toolCall.payload.tool_call_id]);

export function ApprovalBar() {
  const approvals = selectedId.value === null ? NONE : (view.value?.approvals ?? NONE);
  const place = JSON.stringify(approvals.map(keyOf));
  return (
    <div id="approvals">
      {askedTogether(approvals, view.value).map((asked, index) => (
        <Request
          key={keyOf(asked.approval)}
          asked={asked}
          isFirst={index === 0}
          isAlone={approvals.length === 1}
          place={place}
        />
      ))}
    </div>
  );
}

interface RequestProps {
  asked: Asked;
  isFirst: boolean;
  isAlone: boolean;
  place: string;
}

function Request({ asked, isFirst, isAlone, place }: RequestProps) {
  const { approval } = asked;
  const { name, arguments: args } = approval.toolCall.payload;
  const [isGiving, setGiving] = useState(false);
  const [reason, setReason] = useState("");
  const panel = useRef<HTMLElement>(null);
  const reasonBox = useRef<HTMLInputElement>(null);
  // Where more than one is asked, each button says of itself what it answers.
  const named = (answer: string) => (isAlone ? undefined : answerName(answer, asked));
  const { isRead, mayAnswer } = useRead(place);
  const give = async (event: Event, decision: "allow" | "deny") => {
    if (isGiving || !mayAnswer(event)) return;
    setGiving(true);
    // It was said why. Whoever is still asked may try again.
    if (!(await decide(approval, decision, reason.trim()))) setGiving(false);
  };
  useShortcuts({
    isFirst,
    panel,
    allow: (event) => void give(event, "allow"),
    deny: () => reasonBox.current?.focus(),
  });
  // The keyboard goes on where it was wanted.
  useEffect(() => {
    const own = panel.current;
    return () => {
      if (own?.contains(document.activeElement) || document.activeElement === document.body) focusPrompt();
    };
  }, []);
  return (
    <section
      class="request"
      aria-label={approvalName(asked)}
      ref={panel}
      onKeyDown={(event) => {
        // A key that is held presses a button once.
        if (event.repeat && event.target instanceof HTMLButtonElement) event.preventDefault();
      }}
    >
      <div class="request-head">
        <h2>
          Allow <code>{visibleText(name)}</code>?
        </h2>
        <p class="note">{noteOf(asked)}</p>
      </div>
      <IsAsked.Provider value={true}>
        <Arguments name={name} json={args} />
      </IsAsked.Provider>
      <div class="answer">
        <button
          type="button"
          class="primary allow"
          aria-disabled={isGiving || !isRead}
          aria-label={named("Allow")}
          onClick={(event) => give(event, "allow")}
          aria-keyshortcuts="Control+Enter"
        >
          Allow
        </button>
        <button
          type="button"
          class="danger"
          aria-disabled={isGiving || !isRead}
          aria-label={named("Deny")}
          onClick={(event) => give(event, "deny")}
        >
          Deny
        </button>
        <input
          ref={reasonBox}
          type="text"
          class="reason"
          placeholder="Reason for a denial (optional)"
          aria-label={named("Reason for a denial, optional") ?? "Reason for a denial, optional"}
          aria-keyshortcuts="Control+Backspace"
          value={reason}
          onInput={(event) => setReason(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.repeat && !event.isComposing) void give(event, "deny");
            if (event.key === "Escape") focusPrompt();
          }}
        />
        {isFirst && (
          <span class="keys" aria-hidden="true">
            <kbd>Ctrl</kbd> <kbd>⏎</kbd> allow · <kbd>Ctrl</kbd> <kbd>⌫</kbd> deny
          </span>
        )}
      </div>
    </section>
  );
}

function noteOf({ approval, asker, which }: Asked): string {
  const { requestedAt, expiresAt } = approval;
  const minutes = Math.floor((now.value - new Date(requestedAt).getTime()) / 60_000);
  const since =
    minutes < 1
      ? "Asked just now"
      : minutes < 60
        ? `Waiting for ${minutes} min`
        : `Waiting since ${new Date(requestedAt).toLocaleString()}`;
  const until = expiresAt === undefined ? "" : `, until ${new Date(expiresAt).toLocaleTimeString()}`;
  return `${which === "" ? "" : `${which}. `}${asker === "" ? "" : `Asked by ${asker}. `}${since}${until}`;
}
