// The conversation, or the invitation to begin one.

import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import type { Item } from "../item-types.js";
import { itemsOf } from "../items.js";
import { readChildren, selectedId, view } from "../state.js";
import { loadEarlier } from "../watch.js";
import { Card } from "./cards.js";
import { VirtualList } from "./virtual-list.js";
import { Welcome } from "./welcome.js";

const NONE: readonly Item[] = [];

export function Conversation() {
  const shown = view.value;
  const read = readChildren.value;
  const items = useMemo(() => (shown === null ? NONE : itemsOf(shown, read)), [shown, read]);
  const near = useCallback(() => void loadEarlier(), []);
  const isRead = shown !== null && shown.cursor !== null;
  return (
    <VirtualList
      // Another Session is another list, with heights and a place of its own.
      key={selectedId.value ?? ""}
      items={items}
      label="Conversation"
      onNearStart={near}
      head={<Earlier isMore={shown?.nextBefore !== null && isRead} />}
      empty={<Empty isRead={isRead} />}
      render={(item) => <Card item={item} />}
    />
  );
}

function Earlier({ isMore }: { isMore: boolean }) {
  return (
    <div class="earlier">
      {isMore && (
        <button id="earlier" type="button" class="plain" onClick={() => void loadEarlier()}>
          Show earlier messages
        </button>
      )}
    </div>
  );
}

function Empty({ isRead }: { isRead: boolean }) {
  const id = selectedId.value;
  if (id === null) return <Welcome />;
  if (isRead) return <p class="empty">Nothing has been said yet.</p>;
  return <Waiting />;
}

const PATIENCE_MS = 400;

/** Says nothing where the answer comes at once. */
function Waiting() {
  const [isLong, setLong] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLong(true), PATIENCE_MS);
    return () => clearTimeout(timer);
  }, []);
  return isLong ? <p class="empty">Reading the Session…</p> : null;
}
