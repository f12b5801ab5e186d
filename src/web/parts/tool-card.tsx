// A tool call: what it does in a line, its arguments as a person reads them, how it stands, and its output as it comes.

import { useLayoutEffect, useRef } from "preact/hooks";
import type { ToolItem } from "../item-types.js";
import { bytesText } from "../standing.js";
import { plainText } from "../terminal-text.js";
import { approvalText, describeState, readArguments } from "../tool-words.js";
import { visibleText } from "../visible-text.js";
import { Arguments } from "./arguments.js";
import { CopyButton } from "./copy-button.js";
import { Folded } from "./folded.js";
import { Picture } from "./picture.js";
import { TerminalText } from "./terminal-text.js";

export function ToolCard({ item }: { item: ToolItem }) {
  const { text, tone } = describeState(item);
  const approved = approvalText(item);
  const isAsked = item.state === "approval";
  const isFine = item.state === "done" && (item.exitCode ?? 0) === 0;
  const summary = (
    <>
      <span class="tool-name">{item.name === "" ? "…" : visibleText(item.name)}</span>
      <span class="gist">{visibleText(readArguments(item.args).telling.split("\n")[0] ?? "")}</span>
      <span class={`state ${tone}`}>{text}</span>
    </>
  );
  return (
    <Folded id={item.key} class={isAsked ? "tool asked" : "tool"} isOpenAtFirst={!isFine} summary={summary}>
      <div class="tool-body">
        {/* While it is asked about, they stand where it is answered. */}
        {!isAsked && <Arguments name={item.name} json={item.args} />}
        {approved !== "" && <p class="approved">{approved}</p>}
        {item.state === "denied" && item.reason !== "" && <p class="approved">Reason: {item.reason}</p>}
        {item.progressBytes > 0 && <Progress bytes={item.progressBytes} tail={item.progressTail} />}
        {item.hasOutput && item.output !== "" && <Output text={item.output} isLive={!item.isAnswered} />}
        {item.images.length > 0 && (
          <div class="pictures">
            {item.images.map((url) => (
              <Picture key={url} url={url} label={`Image from ${item.name}`} />
            ))}
          </div>
        )}
      </div>
    </Folded>
  );
}

/** Follows its end while it grows, unless the reader has scrolled up in it. */
function Output({ text, isLive }: { text: string; isLive: boolean }) {
  const box = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    if (isLive && isAtEnd.current && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [text, isLive]);
  return (
    <div class="output-box">
      <CopyButton label="Copy the output" text={() => plainText(text)} />
      {/* biome-ignore lint/a11y/useSemanticElements: white space is kept as it is, which only a pre does */}
      <pre
        ref={box}
        class="output"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
        tabIndex={0}
        role="group"
        aria-label="Output"
        onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
          isAtEnd.current = scrollHeight - scrollTop - clientHeight < 24;
        }}
      >
        <TerminalText text={text} />
      </pre>
    </div>
  );
}

function Progress({ bytes, tail }: { bytes: number; tail: string }) {
  return (
    <div class="progress">
      <span class="label">{bytesText(bytes)} so far</span>
      <pre>
        <TerminalText text={tail} />
      </pre>
    </div>
  );
}
