import type { Command } from 'commander';

/**
 * Adds a command with the option `--json`.
 *
 * @param examples - the last part of its help, below the texts that the command adds itself
 */
export function addJsonCommand(parent: Command, name: string, ...examples: readonly string[]): Command {
  const heading = examples.length === 1 ? 'Example' : 'Examples';
  return parent
    .command(name)
    .option('--json', 'print one JSON document')
    .addHelpText('afterAll', `\n${heading}:\n  ${examples.join('\n  ')}`);
}
