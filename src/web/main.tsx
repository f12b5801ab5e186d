// Where the page begins.

import { effect } from "@preact/signals";
import { render } from "preact";
import { loadModels } from "./actions.js";
import { keepDrafts } from "./drafts.js";
import { followList } from "./list.js";
import { learned, takeNames } from "./names.js";
import { App } from "./parts/app.js";
import { focusPrompt } from "./parts/focus.js";
import { isOnline } from "./state.js";
import { recalled, remember } from "./tab-memory.js";
import { loadTheme } from "./theme.js";
import { watchBrowser } from "./watch.js";
import "./styles/tokens.css";
import "./styles/controls.css";
import "./styles/frame.css";
import "./styles/conversation.css";
import "./styles/welcome.css";
import "./styles/cards.css";
import "./styles/terminal.css";
import "./styles/dock.css";
import "./styles/composer.css";
import "./styles/code.css";
import "./styles/phone.css";
import "./styles/low.css";

loadTheme();
takeNames(recalled("names"));
keepDrafts();
effect(() => remember("names", learned.value.length === 0 ? undefined : learned.value));
const host = document.getElementById("app");
if (host !== null) render(<App />, host);
watchBrowser(isOnline);
// Where there is a keyboard, one may begin at once; elsewhere it would cover half the page.
if (matchMedia("(hover: hover)").matches) focusPrompt();
void loadModels();
void followList();
