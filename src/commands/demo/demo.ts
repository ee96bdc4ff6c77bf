import { InvalidArgumentError } from 'commander';
import { createSyntheticTitles, MOST_TITLES } from '../../catalog/synthetic.js';
import { addJsonCommand } from '../add-json-command.js';
import { positiveInteger } from '../arguments.js';
import type { RegisterCommand } from '../context.js';
import { ProgressDisplay } from '../import/progress-display.js';
import { printJson, printLine } from '../output.js';

interface DemoFlags {
  readonly titles: number;
  readonly seed: number;
  readonly json?: boolean;
}

const NOTES = `
The same seed gives the same titles, and a larger number begins with the same ones. The titles have stamps and counts
like all others, and cannot be removed. So the command refuses a catalogue that has other titles. It completes an
earlier run with the same seed. For the small catalogue with real titles, see catalog serve --demo.`;

export const registerDemo: RegisterCommand = (program, { stdout, stderr, signal, withDatabase }) => {
  addJsonCommand(program, 'demo', 'DATABASE_URL=postgres://catalog@localhost/trial catalog demo --titles 1000000')
    .description('fill an empty catalogue with any number of generated titles, for trials at size')
    .requiredOption('--titles <number>', 'how many titles there are to be', titleCount)
    .option('--seed <number>', 'another seed gives other titles', seedNumber, 1)
    .addHelpText('after', NOTES)
    .action(async ({ titles, seed, json }: DemoFlags) => {
      const display = new ProgressDisplay(stderr, { label: 'titles', size: undefined, canDraw: !json });
      const onProgress = (rows: number): void => display.update({ phase: 'writing', rows, bytes: 0, total: titles });
      const options = { titles, seed, onProgress, signal };
      const work = withDatabase((db) => createSyntheticTitles(db, options), { bulk: true });
      const result = await work.finally(() => display.stop());
      if (json) printJson(stdout, { seed, ...result });
      else {
        const created = result.created.toLocaleString('en-US');
        const total = result.titles.toLocaleString('en-US');
        printLine(stdout, `${created} titles created; there are ${total}, all of seed ${seed}`);
      }
    });
};

function titleCount(text: string): number {
  const value = positiveInteger(text);
  if (value > MOST_TITLES) throw new InvalidArgumentError(`Give at most ${MOST_TITLES}.`);
  return value;
}

function seedNumber(text: string): number {
  return text === '0' ? 0 : positiveInteger(text);
}
