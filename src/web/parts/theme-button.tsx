// Light, dark, or what the system says.

import { theme } from "../state.js";
import { chooseTheme, THEMES } from "../theme.js";
import { Icon } from "./icons.js";

const ICONS = { auto: "auto", light: "sun", dark: "moon" } as const;
const NAMES = { auto: "as the system", light: "light", dark: "dark" };

export function ThemeButton() {
  const { value } = theme;
  const next = THEMES[(THEMES.indexOf(value) + 1) % THEMES.length] ?? "auto";
  const label = `Colours: ${NAMES[value]}. Change to ${NAMES[next]}`;
  return (
    <button
      id="theme"
      type="button"
      class="quiet-icon"
      aria-label={label}
      title={label}
      onClick={() => chooseTheme(next)}
    >
      <Icon name={ICONS[value]} />
    </button>
  );
}
