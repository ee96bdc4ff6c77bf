import { restartFeed } from '../catalog/restart.js';
import { MICROS_PER_SECOND, toRfc3339, toSeconds, type Micros } from '../platform/time/micros.js';
import { addJsonCommand } from './add-json-command.js';
import { position } from './arguments.js';
import { changeCallers } from './change-callers.js';
import type { RegisterCommand } from './context.js';
import { printJson, printLine } from './output.js';

/** How far ahead of the clock a beginning may lie without a warning, in microseconds. */
const NOTABLY_AHEAD: Micros = 120n * MICROS_PER_SECOND;

const NOTES = `
For a database that has lost commits: it was restored from a backup, or is a standby that took over without the last
commits. Mirrors may have entries that no longer exist, and the feed cannot announce that. From this command on, every
server answers earlier positions with 400 since_out_of_window. A mirror then needs a fresh copy of the catalogue.

The new beginning lies a minute after the database's clock and after the last stamp. If the lost database's clock was
ahead by more, give with --after the latest position that a mirror may hold: the greatest "since" in the servers' logs.`;

export const registerFeed: RegisterCommand = (program, context) => {
  const { stdout } = context;
  const feed = program.command('feed').description('the feed of changes that mirrors follow');
  addJsonCommand(feed, 'restart', 'catalog feed restart', 'catalog feed restart --after 1795218005.123456')
    .description('begin the feed anew: every mirror has to take a fresh copy')
    .option('--after <seconds>', 'begin later than this position too: Unix time in seconds', position)
    .addHelpText('after', NOTES)
    .action(async ({ after, json }: { after?: number; json?: boolean }) => {
      // Keys have gone back as well, and servers may be connected to the lost database: they look again.
      const { changed } = await changeCallers(context, (db) =>
        restartFeed(db, { after: after === undefined ? undefined : BigInt(Math.round(after * 1e6)) }),
      );
      const { beginning, clock } = changed;
      if (json) {
        printJson(stdout, { beginning: toSeconds(beginning), clock: toSeconds(clock) });
        return;
      }
      printLine(
        stdout,
        `The feed now begins at ${toSeconds(beginning)} (${toRfc3339(beginning)}). Mirrors with an earlier position are refused, and need a fresh copy.`,
      );
      if (beginning - clock > NOTABLY_AHEAD) {
        printLine(
          stdout,
          `This is ${(beginning - clock) / MICROS_PER_SECOND} s ahead of the database's clock: until then, new entries have times in the future.`,
        );
      }
    });
};
