import { withSubcommands, type CompletedCommand, type CompletedOption, type Values } from './command-tree.js';

/** @returns the script that completes the program's command line in zsh */
export function zshCompletion(program: CompletedCommand): string {
  return `#compdef catalog
# Completes the command line of catalog in zsh.
${withSubcommands(program).map(defineFunction).join('\n')}
if [[ $funcstack[1] == _catalog ]]; then
  # Loaded by compinit, from a folder of $fpath.
  _catalog "$@"
else
  compdef _catalog catalog
fi
`;
}

function functionName(path: readonly string[]): string {
  return ['', 'catalog', ...path].join('_');
}

function defineFunction({ path, options, subcommands, arguments: values }: CompletedCommand): string {
  const specs = options.map(optionSpec);
  const header = `${functionName(path)}() {`;
  if (subcommands.length === 0) {
    const places = values.map((value, index) => quoted(`${index + 1}${action(value)}`));
    return [header, `  _arguments ${[...specs, ...places].join(' \\\n    ')}`, '}'].join('\n');
  }
  const commands = subcommands.map((subcommand) =>
    quoted(`${subcommand.path.at(-1) ?? ''}:${subcommand.description.replaceAll(':', String.raw`\:`)}`),
  );
  const calls = subcommands.map(
    (subcommand) => `        ${subcommand.path.at(-1) ?? ''}) ${functionName(subcommand.path)} ;;`,
  );
  return `${header}
  local curcontext=$curcontext state line
  local -a commands=(
    ${commands.join('\n    ')}
  )
  _arguments -C ${[...specs, "'1: :->command'", "'*:: :->argument'"].join(' \\\n    ')}
  case $state in
    command) _describe -t commands command commands ;;
    argument)
      case $line[1] in
${calls.join('\n')}
      esac
      ;;
  esac
}`;
}

/** An option with a value may be repeated. */
function optionSpec({ flags, description, values }: CompletedOption): string {
  const text = `[${description.replaceAll(/[[\]:\\]/g, String.raw`\$&`)}]${values ? action(values) : ''}`;
  if (values) return flags.map((flag) => quoted(`*${flag}${text}`)).join(' ');
  return flags.map((flag) => quoted(`(${flags.join(' ')})${flag}${text}`)).join(' ');
}

function action(values: Values): string {
  switch (values.kind) {
    case 'words':
      return `:value:(${values.words.join(' ')})`;
    case 'file':
      return ':file:_files';
    case 'text':
      return `:${values.name.replaceAll(/[:\\]/g, String.raw`\$&`)}: `;
  }
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
