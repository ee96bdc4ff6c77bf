import { withSubcommands, type CompletedCommand, type CompletedOption, type Values } from './command-tree.js';

/** @returns the script that completes the program's command line in fish */
export function fishCompletion(program: CompletedCommand): string {
  const commands = withSubcommands(program);
  const paths = commands.filter(({ path }) => path.length > 0).map(({ path }) => joined(path));
  return `# Completes the command line of catalog in fish.
function __catalog_at
  set -l command
  for word in (commandline -opc)[2..]
    switch "$command $word"
      case ${paths.join(' ')}
        set command "$command $word"
    end
  end
  test "$command" = "$argv[1]"
end
complete -c catalog -f
${commands.flatMap((command) => linesOf(command).map((line) => `complete -c catalog ${line}`)).join('\n')}
`;
}

function linesOf({ path, subcommands, options, arguments: values }: CompletedCommand): readonly string[] {
  const condition = `-n ${quoted(`__catalog_at ${joined(path)}`)}`;
  return [
    ...subcommands.map(
      (subcommand) => `${condition} -a ${subcommand.path.at(-1) ?? ''} -d ${quoted(subcommand.description)}`,
    ),
    ...values.filter(({ kind }) => kind !== 'text').map((value) => `${condition} ${take(value)}`),
    ...options.map((option) => `${condition} ${optionOf(option)}`),
  ];
}

function optionOf({ flags, description, values }: CompletedOption): string {
  const names = flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`));
  return [...names, `-d ${quoted(description)}`, ...(values ? [`-r ${take(values)}`] : [])].join(' ');
}

function take(values: Values): string {
  switch (values.kind) {
    case 'words':
      return `-f -a ${quoted(values.words.join(' '))}`;
    case 'file':
      return '-F';
    case 'text':
      return '-f';
  }
}

/** Each word of a path after a blank, as the script puts it together. */
function joined(path: readonly string[]): string {
  return quoted(path.map((word) => ` ${word}`).join(''));
}

function quoted(text: string): string {
  return `'${text.replaceAll(/[\\']/g, String.raw`\$&`)}'`;
}
