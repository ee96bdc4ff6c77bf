import type { Command } from 'commander';
import { readCatalogCounts, repairCounts, verifyCounts, type CountMismatch } from '../../catalog/counts.js';
import { OperatorError } from '../../errors.js';
import type { RegisterCommand } from '../context.js';
import { addJsonCommand, report, type JsonFlag } from '../output/report.js';
import { table } from '../output/table.js';

export const registerStats: RegisterCommand = (program, context) => {
  const { stdout, withDatabase } = context;
  const stats = addJsonCommand(program, 'stats', 'catalog stats')
    .description('Print the numbers of /api/v1/stats, and check the counters behind them.')
    .allowExcessArguments()
    .reports(context, async (_options, command: Command) => {
      // If it had an action, commander would take the name of a missing subcommand for an argument.
      if (command.args.length > 0) command.error(`error: unknown command '${command.args.join(' ')}'`);
      const counts = await withDatabase((db) => readCatalogCounts(db), { mayBeReadOnly: true });
      const lines = table(Object.entries<number>({ ...counts }), {
        counter: ([name]) => name.replaceAll('_', ' '),
        value: ([, value]) => value,
      });
      return [{ counts }, lines];
    });
  addJsonCommand(stats, 'verify', 'catalog stats verify')
    .description(
      'Recount the catalogue and compare with the stored counters. The exit code is 1 if a counter is wrong.',
    )
    .option('--repair', 'correct wrong counters; blocks writes to the catalogue meanwhile')
    .action(async ({ repair, json }: { repair?: boolean } & JsonFlag) => {
      const repaired = repair ? await withDatabase(repairCounts, { bulk: true }) : [];
      const { counts, mismatches } = await withDatabase(verifyCounts, { bulk: true });
      const lines = repaired.map((mismatch) => `Repaired ${textOf(mismatch)}`);
      if (mismatches.length === 0) {
        const summary = Object.entries(counts).map(([name, count]) => `${name} ${count}`);
        lines.push(`All counters are correct: ${summary.join(', ')}`);
      }
      if (json || lines.length > 0) report(stdout, json, { counts, mismatches, repaired }, lines.join('\n'));
      if (mismatches.length > 0) {
        const wrong = mismatches.map((mismatch) => `Wrong counter ${textOf(mismatch)}.`);
        throw new OperatorError(wrong.join('\n'), { advice: 'Correct them with --repair.' });
      }
    });
};

function textOf({ counter, kept, counted }: CountMismatch): string {
  return `${counter}: stored ${kept}, counted ${counted}`;
}
