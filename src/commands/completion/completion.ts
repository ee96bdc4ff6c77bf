import { Argument, type Command } from 'commander';
import type { RegisterCommand } from '../context.js';
import { addExamples, addNotes } from '../output/help.js';
import { bashCompletion } from './bash.js';
import { describeCommand, type CompletedCommand } from './command-tree.js';
import { fishCompletion } from './fish.js';
import { zshCompletion } from './zsh.js';

const SHELLS: Readonly<Record<string, (program: CompletedCommand) => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
};

const NOTES = `The script completes the commands, options and values of this version for a program or an alias named
catalog. Load it where your shell starts:
  bash  source <(catalog completion bash)    in ~/.bashrc
  zsh   source <(catalog completion zsh)     in ~/.zshrc, after compinit
  fish  catalog completion fish | source     in ~/.config/fish/config.fish`;

export const registerCompletion: RegisterCommand = (program, { stdout }) => {
  const completion = program.command('completion').description('Print a script that completes commands in your shell.');
  addExamples(addNotes(completion, NOTES), ['catalog completion bash'])
    .addArgument(new Argument('<shell>', 'your shell').choices(Object.keys(SHELLS)))
    .action((shell: string, _options: object, command: Command) => {
      const script = SHELLS[shell]?.(describeCommand(program));
      stdout.write(script ?? command.error(`error: unknown shell '${shell}'`));
    });
};
