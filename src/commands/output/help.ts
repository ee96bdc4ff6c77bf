import type { Command, Help } from 'commander';

/** The widest line of a help, in columns. Longer lines are hard to read on a wide terminal too. */
export const HELP_WIDTH = 80;

/**
 * Adds notes below the options of a command's help.
 *
 * @param notes - paragraphs, which are wrapped anew; indented lines stay as they are
 */
export function addNotes(command: Command, notes: string): Command {
  return addText(command, (helper, width) => helper.boxWrap(notes.replaceAll(/^(\S.*)\n(?=\S)/gm, '$1 '), width));
}

/** Adds a list below the options of a command's help. @param items - each with its description */
export function addItems(command: Command, heading: string, items: readonly (readonly [string, string])[]): Command {
  return addText(command, (helper, width) => {
    const termWidth = Math.max(...items.map(([term]) => term.length));
    const lines = items.map(([term, description]) => helper.formatItem(term, termWidth, description, helper));
    return [helper.boxWrap(heading, width), ...lines].join('\n');
  });
}

/** Adds the last part of a command's help. */
export function addExamples(command: Command, examples: readonly string[]): Command {
  const heading = examples.length === 1 ? 'Example' : 'Examples';
  const text = `\n${heading}:\n  ${examples.join('\n  ')}`;
  // Subcommands have their own.
  return command.addHelpText('afterAll', (context) => (context.command === command ? text : ''));
}

function addText(command: Command, format: (helper: Help, width: number) => string): Command {
  return command.addHelpText('after', () => {
    const width = command.configureOutput().getOutHelpWidth?.() ?? HELP_WIDTH;
    const helper = command.createHelp();
    helper.prepareContext({ helpWidth: width });
    return `\n${format(helper, width)}`;
  });
}
