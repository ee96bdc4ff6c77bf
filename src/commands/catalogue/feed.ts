import type { Knex } from 'knex';
import type { Command } from 'commander';
import { addAbortSignal } from 'node:stream';
import { restartFeed } from '../../catalog/restart.js';
import { OperatorError } from '../../errors.js';
import { readLine } from '../../platform/text/read-line.js';
import { fromSeconds, MICROS_PER_SECOND, toRfc3339, toSeconds, type Micros } from '../../platform/time/micros.js';
import { position } from '../arguments.js';
import type { CommandContext, RegisterCommand } from '../context.js';
import { makeChange } from '../make-change.js';
import { addJsonCommand } from '../output/report.js';

/** How far ahead of the clock the feed start may lie without a warning, in microseconds. */
const NOTABLY_AHEAD: Micros = 120n * MICROS_PER_SECOND;

const NOTES = `Use it for a database that was restored from a backup, or for a standby that took over without the last commits.
Mirrors may then have entries that no longer exist, which the feed cannot announce. After this command, every server
answers earlier positions with 400 since_out_of_window, and each mirror needs a fresh copy of the catalogue.

The new feed start is a minute after the later of two times: the database's clock and the last change's timestamp. If
the lost database's clock was further ahead, use --after with the latest position that a mirror may have: the greatest
"since" in the servers' logs.

This cannot be undone. On a terminal you are asked to confirm; elsewhere --yes is required.`;

interface RestartFlags {
  readonly after?: number;
  readonly yes?: boolean;
}

export const registerFeed: RegisterCommand = (program, context) => {
  const feed = program.command('feed').description('Manage the feed of changes that mirrors follow.');
  const examples = ['catalog feed restart', 'catalog feed restart --yes --after 1795218005.123456'];
  addJsonCommand(feed, 'restart', examples, NOTES)
    .description('Restart the feed after the database has lost commits. Every mirror then needs a fresh copy.')
    .option('--after <seconds>', 'also set the feed start later than this position: Unix time in seconds', position)
    .option('--yes', 'restart without asking')
    .reports(context, async ({ after, yes }: RestartFlags, command: Command) => {
      if (!yes) await confirm(context, command);
      const latest = after === undefined ? undefined : fromSeconds(after);
      // A trigger makes servers drop all callers. This publishes the timeline, and fails if the database is an older one.
      const restart = (db: Knex) => restartFeed(db, { after: latest });
      const { feedStart, clock } = await makeChange(context, restart);
      const lines = [
        `The feed start is now ${toSeconds(feedStart)} (${toRfc3339(feedStart)}). Mirrors with an earlier position are refused and need a fresh copy.`,
        'The feed refuses published copies made before, too. Publish one now: catalog export --publish FOLDER',
      ];
      if (feedStart - clock > NOTABLY_AHEAD) {
        const seconds = (feedStart - clock) / MICROS_PER_SECOND;
        lines.push(
          `This is ${seconds} s ahead of the database's clock: until the clock catches up, new entries have timestamps in the future.`,
        );
      }
      return [{ feed_start: toSeconds(feedStart), clock: toSeconds(clock) }, lines.join('\n')];
    });
};

/** Asks whether to restart the feed. @throws OperatorError for any answer but yes */
async function confirm({ stdin, stderr, signal }: CommandContext, command: Command): Promise<void> {
  if (!stdin.isTTY) command.error("error: required option '--yes' not specified: every mirror will need a fresh copy");
  stderr.write('Every mirror will need a fresh copy. Restart the feed? [y/N] ');
  const answer = await readLine(addAbortSignal(signal, stdin)).catch(() => {
    stderr.write('\n');
    return '';
  });
  if (!/^y(?:es)?$/i.test(answer)) throw new OperatorError('Not confirmed. The feed is unchanged.');
}
