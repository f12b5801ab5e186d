// Arguments as a person reads them: a command as a command, an edit as a difference, the rest by name. What cannot be
// seen in them is made visible, since they are decided on here.

import { useMemo } from "preact/hooks";
import { lineDiff } from "../diff.js";
import { isRepeated, readArguments } from "../tool-words.js";
import { visibleText } from "../visible-text.js";
import { Box } from "./box.js";

export function Arguments({ name, json }: { name: string; json: string }) {
  const read = useMemo(() => readArguments(json), [json]);
  const { telling, others, raw, values } = read;
  const edit = name === "edit_file" ? editOf(values) : undefined;
  const shown = edit === undefined ? others : others.filter((each) => !/^(old|new)_string$/.test(each.name));
  return (
    <div class="arguments">
      {raw !== "" && <Pre class="raw" label="Arguments" text={raw} />}
      {telling !== "" && !isRepeated(name, read) && (
        <Pre class={name === "exec_command" ? "command" : "path"} label="Argument" text={telling} />
      )}
      {edit !== undefined && <Diff before={edit.before} after={edit.after} />}
      {shown.map(({ name: label, value }) => (
        <Argument key={label} label={label} value={value} isNew={name === "write_file" && label === "content"} />
      ))}
    </div>
  );
}

function editOf(values: Record<string, unknown>): { before: string; after: string } | undefined {
  const { old_string: before, new_string: after } = values;
  return typeof before === "string" && typeof after === "string" ? { before, after } : undefined;
}

function Argument({ label, value, isNew }: { label: string; value: string; isNew: boolean }) {
  if (isNew) return <Diff before="" after={value} />;
  const text = visibleText(value);
  const isShort = value.length < 60 && !value.includes("\n");
  return (
    <div class={isShort ? "argument short" : "argument"}>
      <span class="label">{visibleText(label)}</span>
      {isShort ? <code>{text}</code> : <Pre class="value" label={label} text={value} />}
    </div>
  );
}

export function Pre({ text, ...rest }: { text: string; label: string; class: string }) {
  return <Box {...rest}>{useMemo(() => visibleText(text), [text])}</Box>;
}

const SIGNS = { same: " ", added: "+", removed: "-" };

export function Diff({ before, after }: { before: string; after: string }) {
  const lines = useMemo(() => lineDiff(before, after), [before, after]);
  return (
    <Box class="diff" label="Change">
      {lines.map(({ kind, text }, index) => (
        <span key={index} class={`line ${kind}`}>{`${SIGNS[kind]} ${visibleText(text)}\n`}</span>
      ))}
    </Box>
  );
}
