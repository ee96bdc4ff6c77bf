import { repairCounts, verifyCounts, type CountMismatch } from '../catalog/counts.js';
import { OperatorError } from '../errors.js';
import type { RegisterCommand } from './context.js';
import { addJsonCommand, report } from './report.js';

export const registerStats: RegisterCommand = (program, { stdout, withDatabase }) => {
  const stats = program.command('stats').description('Check the counters behind /api/v1/stats.');
  addJsonCommand(stats, 'verify', 'catalog stats verify')
    .description(
      'Recount the catalogue and compare with the stored counters. The exit code is 1 if a counter is wrong.',
    )
    .option('--repair', 'correct wrong counters; blocks writes to the catalogue meanwhile')
    .action(async ({ repair, json }: { repair?: boolean; json?: boolean }) => {
      const repaired = repair ? await withDatabase(repairCounts, { bulk: true }) : [];
      const { counts, mismatches } = await withDatabase(verifyCounts, { bulk: true });
      const lines = repaired.map((mismatch) => `Repaired ${describe(mismatch)}`);
      if (mismatches.length === 0) {
        const summary = Object.entries(counts).map(([name, count]) => `${name} ${count}`);
        lines.push(`All counters are correct: ${summary.join(', ')}`);
      }
      if (json || lines.length > 0) report(stdout, json, { counts, mismatches, repaired }, lines.join('\n'));
      if (mismatches.length > 0) {
        throw new OperatorError(
          [...mismatches.map((mismatch) => `Wrong counter ${describe(mismatch)}`), 'Correct them with --repair.'].join(
            '\n',
          ),
        );
      }
    });
};

function describe({ counter, kept, counted }: CountMismatch): string {
  return `${counter}: stored ${kept}, counted ${counted}`;
}
