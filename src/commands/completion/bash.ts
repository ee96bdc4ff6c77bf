import { withSubcommands, type CompletedCommand, type Values } from './command-tree.js';

/** @returns the script that completes the program's command line in bash; it needs no other package */
export function bashCompletion(program: CompletedCommand): string {
  const commands = withSubcommands(program);
  const valuesOfOptions = commands.flatMap(({ path, options }) =>
    options.flatMap(({ flags, values }) => (values ? flags.map((flag) => inCase([...path, flag], [values])) : [])),
  );
  const valuesOfCommands = commands.map((command) => {
    const subcommands: Values = { kind: 'words', words: command.subcommands.map(({ path }) => path.at(-1) ?? '') };
    const flags = command.options.flatMap((option) => option.flags).join(' ');
    return inCase(command.path, [subcommands, ...command.arguments], `flags='${flags}' `);
  });
  const paths = commands.filter(({ path }) => path.length > 0).map(({ path }) => pattern(path));
  return `# Completes the command line of catalog in bash.
_catalog() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD - 1]} command= words= flags= files= text= i
  # bash divides --kind=titles into three words.
  if [[ $cur == = ]]; then
    cur=
  elif [[ $prev == = ]]; then
    prev=\${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$command \${COMP_WORDS[i]}" in
      ${paths.join(' | ')}) command+=" \${COMP_WORDS[i]}" ;;
    esac
  done
  case "$command $prev" in
    ${valuesOfOptions.join('\n    ')}
    *)
      case "$command" in
        ${valuesOfCommands.join('\n        ')}
      esac
      if [[ $cur == -* || -z $words$files$text ]]; then words=$flags; fi
      ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
  if [[ -n $files && \${#COMPREPLY[@]} -eq 0 ]]; then compopt -o default 2>/dev/null; fi
}
complete -F _catalog catalog
`;
}

/** Each word of a path after a blank, as the script puts it together. */
function pattern(path: readonly string[]): string {
  return `'${path.map((word) => ` ${word}`).join('')}'`;
}

function inCase(path: readonly string[], values: readonly Values[], statement = ''): string {
  const words = values.flatMap((value) => (value.kind === 'words' ? value.words : [])).join(' ');
  const [files, text] = (['file', 'text'] as const).map((kind) => values.some((value) => value.kind === kind));
  return `${pattern(path)}) ${words && `words='${words}' `}${files ? 'files=1 ' : ''}${text ? 'text=1 ' : ''}${statement};;`;
}
