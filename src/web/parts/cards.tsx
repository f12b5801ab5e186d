// The items of a conversation, each as its card.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { askAgain, fork } from "../actions.js";
import type { Item } from "../item-types.js";
import { short } from "../standing.js";
import { readChildren } from "../state.js";
import { unreachable } from "../unreachable.js";
import { readChild } from "../watch.js";
import { CopyButton } from "./copy-button.js";
import { focusPromptEnd } from "./focus.js";
import { Folded } from "./folded.js";
import { Guarded } from "./guarded.js";
import { Icon } from "./icons.js";
import { Picture } from "./picture.js";
import { Prose } from "./prose.js";
import { ToolCard } from "./tool-card.js";

type Of<K extends Item["kind"]> = { item: Extract<Item, { kind: K }> };

/** An item that looks as before is not rendered again. */
export function Card({ item }: { item: Item }) {
  const shown = useRef(item);
  if (!looksEqual(shown.current, item)) shown.current = item;
  const { current } = shown;
  return useMemo(
    () => (
      <Guarded instead={<PlainCard item={current} />}>
        <CardOfKind item={current} />
      </Guarded>
    ),
    [current],
  );
}

/** What a card says where it cannot be shown as what it is. */
function PlainCard({ item }: { item: Item }) {
  const text = "text" in item ? item.text : "";
  return (
    <article class="notice bad" aria-label="Not shown">
      <p>This cannot be shown as it should be{text === "" ? "." : ":"}</p>
      {text !== "" && <pre class="unshown">{text}</pre>}
    </article>
  );
}

function looksEqual(a: Item, b: Item): boolean {
  if (a === b) return true;
  const left = a as unknown as Record<string, unknown>;
  const right = b as unknown as Record<string, unknown>;
  return Object.keys(right).every((key) => left[key] === right[key]);
}

function CardOfKind({ item }: { item: Item }) {
  switch (item.kind) {
    case "user":
      return <UserCard item={item} />;
    case "text":
      return <TextCard item={item} />;
    case "thinking":
      return <ThinkingCard item={item} />;
    case "tool":
      return <ToolCard item={item} />;
    case "subagent":
      return <SubagentCard item={item} />;
    case "notice":
      return <NoticeCard item={item} />;
    case "compaction":
      return <CompactionCard item={item} />;
    case "image":
      return (
        <article class={`media ${item.role}`} aria-label="Image">
          <Picture url={item.url} label="Image" />
          <MediaTools forkAt={item.forkAt} />
        </article>
      );
    case "file":
      return (
        <article class={`media ${item.role}`} aria-label="File">
          <p class="file">
            <Icon name="file" size={16} /> {item.name}
          </p>
          <MediaTools forkAt={item.forkAt} />
        </article>
      );
    default:
      return unreachable(item);
  }
}

function UserCard({ item }: Of<"user">) {
  const { text, at, steered, forkAt } = item;
  return (
    <article class="user" aria-label="You" title={new Date(at).toLocaleString()}>
      <div class="bubble" dir="auto">
        {text}
      </div>
      {steered && <p class="note">sent while it worked</p>}
      <MessageTools text={text}>
        <AskAgain forkAt={forkAt} />
      </MessageTools>
    </article>
  );
}

function TextCard({ item }: Of<"text">) {
  const { text, open, stop, forkAt } = item;
  const isCut = stop !== "" && stop !== "completed";
  return (
    <article class={open ? "assistant open" : "assistant"} aria-label="Answer">
      <Prose id={item.key} text={text} isOpen={open} />
      {/* Why, the notice says that follows. */}
      {isCut && <p class="note">This answer is not complete.</p>}
      {!open && (
        <MessageTools text={text}>
          {forkAt !== null && <ForkButton label="Fork from here" onFork={() => fork(forkAt)} />}
        </MessageTools>
      )}
    </article>
  );
}

function MessageTools({ text, children }: { text: string; children: ComponentChildren }) {
  return (
    <div class="message-tools">
      <CopyButton label="Copy" text={() => text} />
      {children}
    </div>
  );
}

/** Of a Prompt without a text. */
function MediaTools({ forkAt }: { forkAt: number | null }) {
  if (forkAt === null) return null;
  return (
    <div class="message-tools">
      <AskAgain forkAt={forkAt} />
    </div>
  );
}

function AskAgain({ forkAt }: { forkAt: number | null }) {
  return forkAt === null ? null : <ForkButton label="Ask this again in a fork" onFork={() => askAgain(forkAt)} />;
}

function ForkButton({ label, onFork }: { label: string; onFork: () => Promise<boolean> }) {
  return (
    <button
      type="button"
      class="quiet-icon"
      title={label}
      aria-label={label}
      onClick={async () => {
        if (await onFork()) focusPromptEnd();
      }}
    >
      <Icon name="fork" size={15} />
    </button>
  );
}

function ThinkingCard({ item }: Of<"thinking">) {
  const { text, open, key } = item;
  return (
    <Folded
      id={key}
      class={open ? "thinking open" : "thinking"}
      isOpenAtFirst={false}
      summary={open ? "Thinking…" : "Thinking"}
    >
      <div class="thought" dir="auto">
        {text === "" && !open ? "The provider keeps this reasoning to itself." : text}
      </div>
    </Folded>
  );
}

/** Time for the stream to bring the first of it. */
const SOON_MS = 500;

function SubagentCard({ item }: Of<"subagent">) {
  const { sessionId, asked, items } = item;
  const isEmpty = items.length === 0;
  useEffect(() => {
    if (!isEmpty) return;
    const timer = setTimeout(() => void readChild(sessionId), SOON_MS);
    return () => clearTimeout(timer);
  }, [isEmpty, sessionId]);
  return (
    <Folded
      id={item.key}
      class="subagent"
      isOpenAtFirst={true}
      summary={asked === "" ? "Subagent" : `Subagent: ${asked}`}
    >
      <div class="items">
        {isEmpty && <p class="faint">{readChildren.value.has(sessionId) ? "Nothing of it is here any more." : "…"}</p>}
        {items.map((each) => (
          <div class="row" key={each.key}>
            <Card item={each} />
          </div>
        ))}
      </div>
    </Folded>
  );
}

function NoticeCard({ item }: Of<"notice">) {
  return (
    <div class={`notice ${item.tone}`}>
      <p>{item.text}</p>
      {item.more !== "" && (
        <Folded id={item.key} class="more" isOpenAtFirst={false} summary="Show">
          <Prose text={item.more} />
        </Folded>
      )}
    </div>
  );
}

function CompactionCard({ item }: Of<"compaction">) {
  const { status, summary, context, key } = item;
  const size = context > 0 ? ` (${short(context)} tokens)` : "";
  return (
    <div class={`compaction ${status}`}>
      <p class="rule">
        <span>{compactionText(status, size)}</span>
      </p>
      {summary !== "" && (
        <Folded id={key} class="more" isOpenAtFirst={false} summary="Summary">
          <Prose text={summary} />
        </Folded>
      )}
    </div>
  );
}

function compactionText(status: string, size: string): string {
  if (status === "running") return `Compacting the context${size}…`;
  if (status === "completed") return `The context was compacted${size}.`;
  return `Compacting the context ${status === "aborted" ? "was stopped" : "failed"}. The old context stays.`;
}
