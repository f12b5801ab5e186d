// Completions for bash and zsh, made of the commands themselves, so that they cannot fall behind.

/** A command as a completion sees it. */
export interface CommandShape {
  name: string;
  description: string;
  options: {
    flags: readonly string[];
    description: string;
    takesValue: boolean;
    takesFolder: boolean;
    choices: readonly string[];
  }[];
  /** What may stand as its argument, where that is known. */
  choices: readonly string[];
  takesFile: boolean;
}

export const SHELLS = ["bash", "zsh"] as const;
export type Shell = (typeof SHELLS)[number];

/** @returns the script; `eval "$(omnid completion bash)"` turns it on. */
export function completion(shell: Shell, commands: readonly CommandShape[]): string {
  return shell === "bash" ? bash(commands) : zsh(commands);
}

function bash(commands: readonly CommandShape[]): string {
  const names = commands.map(({ name }) => name).join(" ");
  const cases = commands.map((command) => {
    const flags = command.options.flatMap((option) => option.flags).join(" ");
    const values = command.options
      .filter(({ takesValue }) => takesValue)
      .map(({ flags: own, choices, takesFolder }) => {
        const known = choices.length > 0 ? `COMPREPLY=($(compgen -W "${choices.join(" ")}" -- "$word"))` : ":";
        const words = takesFolder ? "_omnid_paths -d" : known;
        return `        ${own.join("|")}) ${words}; return ;;`;
      });
    const before = values.length === 0 ? "" : `      case "$before" in\n${values.join("\n")}\n      esac\n`;
    const files = command.takesFile ? "; _omnid_paths -f" : "";
    const words = [flags, ...command.choices].join(" ");
    return `    ${command.name})\n${before}      COMPREPLY=($(compgen -W "${words}" -- "$word"))${files} ;;`;
  });
  // A path is one word whatever is in it; bash before 4 has neither mapfile nor compopt.
  return `_omnid_paths() {
  local path
  compopt -o filenames 2>/dev/null
  while IFS= read -r path; do COMPREPLY+=("$path"); done < <(compgen "$1" -- "$word")
}
_omnid() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}"
  COMPREPLY=()
  # To bash the "=" of --option=value is a word of its own.
  [ "$word" = "=" ] && word=""
  [ "$before" = "=" ] && before="\${COMP_WORDS[COMP_CWORD-2]}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${names} --help --version" -- "$word"))
    return
  fi
  case "\${COMP_WORDS[1]}" in
${cases.join("\n")}
  esac
}
complete -F _omnid omnid
`;
}

function zsh(commands: readonly CommandShape[]): string {
  const names = commands.map(({ name, description }) => `    ${quoted(`${name}:${description}`)}`);
  const cases = commands.map((command) => {
    const options = command.options.flatMap(({ flags, description, takesValue, takesFolder, choices }) => {
      const known = choices.length > 0 ? `:value:(${choices.join(" ")})` : ":value:";
      const value = takesFolder ? ":folder:_files -/" : takesValue ? known : "";
      // What ends with "=" takes its value behind one or as the next word.
      const spelt = flags.map((flag) => (takesValue && flag.startsWith("--") ? `${flag}=` : flag));
      return spelt.map((flag) => quoted(`${flag}[${description.replace(/[[\]:]/g, " ")}]${value}`));
    });
    const argument = command.takesFile
      ? ["'1:file:_files'"]
      : command.choices.length > 0
        ? [quoted(`1:choice:(${command.choices.join(" ")})`)]
        : [];
    return `    ${command.name}) _arguments ${[...options, ...argument].join(" ")} ;;`;
  });
  return `#compdef omnid
_omnid() {
  local -a commands=(
${names.join("\n")}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  shift words
  (( CURRENT-- ))
  case "$words[1]" in
${cases.join("\n")}
  esac
}
if [ "$funcstack[1]" = "_omnid" ]; then _omnid; else compdef _omnid omnid; fi
`;
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
