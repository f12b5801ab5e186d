// What can be done with a Session as a whole, from its row or from above the conversation.

import type { Session } from "../../client/index.js";
import { compact, downloadTrace, update } from "../actions.js";
import { nameOf } from "../names.js";
import { dialog, isBusy } from "../state.js";
import { Icon } from "./icons.js";
import { Menu, type MenuEntry } from "./menu.js";

export function SessionMenu({ session, isOpenOne = false }: { session: Session; isOpenOne?: boolean }) {
  const { sessionId, archived } = session;
  const show = (kind: "rename" | "delete") => () => {
    dialog.value = { kind, session };
  };
  const entries: MenuEntry[] = [
    { text: "Rename…", run: show("rename") },
    ...(isOpenOne ? [{ text: "Compact the context", run: () => void compact(), isDisabled: isBusy.value }] : []),
    { text: "Download the Trace", run: () => void downloadTrace(session) },
    {
      text: archived ? "Unarchive" : "Archive",
      run: () => void update(sessionId, { archived: !archived }),
    },
    { text: "Delete…", run: show("delete"), isDanger: true },
  ];
  const named = isOpenOne ? { id: "session-menu" } : {};
  return (
    <Menu label={isOpenOne ? "This Session" : `Actions for ${nameOf(session)}`} entries={entries} {...named}>
      <Icon name="more" />
    </Menu>
  );
}
