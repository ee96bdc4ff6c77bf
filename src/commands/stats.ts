import { repairCounts, verifyCounts, type CountMismatch } from '../catalog/counts.js';
import { OperatorError } from '../errors.js';
import { addJsonCommand } from './add-json-command.js';
import type { RegisterCommand } from './context.js';
import { printJson, printLine } from './output.js';

export const registerStats: RegisterCommand = (program, { stdout, withDatabase }) => {
  const stats = program.command('stats').description('the counts that /api/v1/stats answers with');
  addJsonCommand(stats, 'verify', 'catalog stats verify')
    .description('count everything again and compare; exit code 1 when a counter is wrong')
    .option('--repair', 'set wrong counters right; writers of the catalogue wait meanwhile')
    .action(async ({ repair, json }: { repair?: boolean; json?: boolean }) => {
      const repaired = repair ? await withDatabase(repairCounts, { bulk: true }) : [];
      const { counts, mismatches } = await withDatabase(verifyCounts, { bulk: true });
      if (json) printJson(stdout, { counts, mismatches, repaired });
      else {
        for (const mismatch of repaired) printLine(stdout, `Repaired ${describe(mismatch)}`);
        if (mismatches.length === 0) {
          const summary = Object.entries(counts).map(([name, count]) => `${name} ${count}`);
          printLine(stdout, `All counters are right: ${summary.join(', ')}`);
        }
      }
      if (mismatches.length > 0) {
        throw new OperatorError(
          [...mismatches.map((mismatch) => `Wrong: ${describe(mismatch)}`), 'Set them right with --repair.'].join('\n'),
        );
      }
    });
};

function describe({ counter, kept, counted }: CountMismatch): string {
  return `${counter} is kept as ${kept}, a recount says ${counted}`;
}
