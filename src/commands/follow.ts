import { InvalidArgumentError } from 'commander';
import { OperatorError } from '../errors.js';
import { createClient, parseBaseUrl } from '../follower/client.js';
import { follow } from '../follower/follow.js';
import { endBrokenLine, writeLines } from '../follower/lines.js';
import { showPosition } from '../follower/show-position.js';
import { openState, type FollowerState } from '../follower/state.js';
import { position } from './arguments.js';
import type { CommandContext, RegisterCommand } from './context.js';
import { printLine } from './report.js';

interface FollowFlags {
  readonly baseUrl: string;
  readonly state: string;
  readonly since?: number;
  readonly interval: number;
  readonly once?: boolean;
}

/** Seconds between two visits: 5,760 a day, which leaves room for catching up in a free plan's 10,000. */
const DEFAULT_INTERVAL = 15;

const HELP = `
Writes every created or updated entry as a line of NDJSON to standard output, oldest first. The state file keeps the
position. It is saved only when the lines have left the program; in a file, when they are on the disk. So every entry
arrives at least once. After a crash the last page may come again, and a line may be incomplete: skip what is not JSON,
since its entry comes again.

The key comes from the environment variable CATALOG_API_KEY. "read -rs CATALOG_API_KEY && export CATALOG_API_KEY" sets it
and keeps it out of the shell's history.

The command reports temporary failures on standard error, and waits as long as Retry-After says. Exit code 0: SIGINT,
SIGTERM, the reader of the lines has ended, or --once. Exit code 1: you must act, and the message says how.

A mirror begins with a full copy of the catalogue from its operator, or with nothing. With the operator's state file
for the copy (catalog export --state), it continues exactly where the copy ends. Without one, give a time an hour before
the copy was begun: the hour covers entries that were being written then. Applying an entry twice does no harm.

Examples:
  catalog follow --base-url https://catalog.example.com --state mirror.json >> changes.ndjson
  catalog follow --base-url https://catalog.example.com --state mirror.json \\
    --since 1795218005 >> changes.ndjson`;

export const registerFollow: RegisterCommand = (program, context) => {
  program
    .command('follow')
    .description("follow a service's changes: one line of JSON for each, resuming where it stopped")
    .requiredOption('--base-url <url>', 'the service: the URL before /api/v1')
    .requiredOption('--state <file>', 'where the position is kept; made if it does not exist')
    .option('--since <seconds>', 'where to begin while there is no state file: Unix time in seconds', position)
    .option('--interval <seconds>', 'between two visits when nothing more is waiting', interval, DEFAULT_INTERVAL)
    .option('--once', 'end when nothing more is waiting')
    .addHelpText('after', HELP)
    .action((flags: FollowFlags) => run(flags, context));
};

async function run(flags: FollowFlags, context: CommandContext): Promise<void> {
  const { stdout, stderr, signal } = context;
  const baseUrl = parseBaseUrl(flags.baseUrl);
  const key = context.clientKey();
  if (key === '') throw new OperatorError('Set the environment variable CATALOG_API_KEY to your API key.');
  const readPage = createClient({ baseUrl, key });
  let state: FollowerState;
  try {
    state = await openState(flags.state, baseUrl, signal);
  } catch (error) {
    if (signal.aborted) return;
    throw error;
  }
  const ending = AbortSignal.any([signal, state.lost]);
  try {
    const since = state.since ?? flags.since ?? demandSince(flags.state);
    printLine(stderr, `Following ${baseUrl} from ${showPosition(since)}.`);
    await endBrokenLine(stdout);
    const reached = await follow({
      readPage,
      since,
      once: flags.once ?? false,
      intervalMs: flags.interval * 1000,
      deliver: ({ data }) => writeLines(stdout, data, ending),
      save: (next) => state.save(next),
      signal: ending,
      onFailure: (failure, waitMs) => printLine(stderr, `${failure}. Trying again in ${Math.ceil(waitMs / 1000)} s.`),
    });
    state.lost.throwIfAborted();
    printLine(stderr, `Stopped at ${showPosition(reached)}.`);
  } catch (error) {
    // The reader of the lines has ended: `catalog follow | head`.
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error;
  } finally {
    await state.close();
  }
}

function demandSince(file: string): never {
  throw new OperatorError(
    `There is no state file ${file} yet, so give --since: where to begin, as Unix time in seconds. A mirror needs a ` +
      'full copy of the catalogue first: take the state file that came with it, or give a time an hour before that ' +
      'copy was begun.',
  );
}

function interval(text: string): number {
  const seconds = /^\d{1,5}(?:\.\d{1,3})?$/.test(text) ? Number(text) : 0;
  if (seconds < 0.1 || seconds > 86_400) throw new InvalidArgumentError('Give seconds, from 0.1 to 86400.');
  return seconds;
}
