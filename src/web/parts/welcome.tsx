// Before the first prompt: what happens here, where it works, and what may be tried.

import { setDraft } from "../drafts.js";
import { choices } from "../state.js";
import { focusPrompt } from "./focus.js";
import { Icon } from "./icons.js";

/** Prompts that the demo model understands, and what they show. */
const EXAMPLES = [
  { prompt: "/run ls -la", about: "Run a command, with your approval" },
  { prompt: "/parallel date && uptime", about: "Two commands at once" },
  { prompt: "/write notes.md Hello from omnid", about: "Write a file in the Workspace" },
  { prompt: "/subagent /run date", about: "Hand a task to a subagent" },
];

export function Welcome() {
  const { model, workspace } = choices.value;
  const isDemo = model.startsWith("demo/");
  const setWorkspace = (text: string) => {
    choices.value = { ...choices.value, workspace: text };
  };
  return (
    <section class="welcome" aria-labelledby="welcome-title">
      <h2 id="welcome-title">What should be done?</h2>
      <p class="faint">
        The first prompt starts a Session. It runs on the server: close this page, come back, and it is all here.
      </p>
      <label class="workspace">
        <span>Workspace</span>
        <input
          type="text"
          autocomplete="off"
          spellcheck={false}
          placeholder="/path/to/project, or a fresh folder"
          value={workspace}
          onInput={(event) => setWorkspace(event.currentTarget.value)}
        />
      </label>
      {isDemo && (
        <>
          <p class="faint">The demo model needs no key and runs real tools. Try one of these:</p>
          <ul class="examples">
            {EXAMPLES.map(({ prompt, about }) => (
              <li key={prompt}>
                <button
                  type="button"
                  onClick={() => {
                    setDraft(prompt);
                    focusPrompt();
                  }}
                >
                  <span>{about}</span>
                  <code>{prompt}</code>
                </button>
              </li>
            ))}
          </ul>
        </>
      )}
      <p class="shortcuts-hint faint">
        <Icon name="keyboard" size={15} /> <kbd>Enter</kbd> sends, <kbd>Shift</kbd> <kbd>Enter</kbd> makes a line,{" "}
        <kbd>?</kbd> shows all shortcuts
      </p>
    </section>
  );
}
