import type { Argument, Command, Option } from 'commander';

/** What a place on the command line takes: one of some words, the name of a file or folder, or another text. */
export type Values =
  | { readonly kind: 'words'; readonly words: readonly string[] }
  | { readonly kind: 'file' }
  | { readonly kind: 'text'; readonly name: string };

export interface CompletedOption {
  /** `-h`, `--help` */
  readonly flags: readonly string[];
  readonly description: string;
  /** Undefined for a flag without a value. */
  readonly values: Values | undefined;
}

/** A command, as its completion needs it. */
export interface CompletedCommand {
  /** From the program: `['keys', 'create']`; empty for the program. */
  readonly path: readonly string[];
  readonly description: string;
  readonly subcommands: readonly CompletedCommand[];
  readonly options: readonly CompletedOption[];
  readonly arguments: readonly Values[];
}

/** Describes a command with all commands below it, as its help lists them. */
export function describeCommand(command: Command, path: readonly string[] = []): CompletedCommand {
  const help = command.createHelp();
  return {
    path,
    description: command.description(),
    subcommands: help
      .visibleCommands(command)
      .map((subcommand) => describeCommand(subcommand, [...path, subcommand.name()])),
    options: help.visibleOptions(command).map((option) => ({
      flags: [option.short, option.long].filter((flag) => flag !== undefined),
      description: option.description,
      values: option.required || option.optional ? valuesOf(option) : undefined,
    })),
    arguments: command.registeredArguments.map(valuesOf),
  };
}

/** @returns the command and all below it */
export function withSubcommands(command: CompletedCommand): readonly CompletedCommand[] {
  return [command, ...command.subcommands.flatMap(withSubcommands)];
}

/** The help calls a value that is a file `<file>`, and a folder `<folder>`. */
function valuesOf(part: Argument | Option): Values {
  const name = 'flags' in part ? (/<(.+)>/.exec(part.flags)?.[1] ?? '') : part.name();
  if (part.argChoices !== undefined) return { kind: 'words', words: part.argChoices };
  return name === 'file' || name === 'folder' ? { kind: 'file' } : { kind: 'text', name };
}
