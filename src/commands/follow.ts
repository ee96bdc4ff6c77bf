import { OperatorError } from '../errors.js';
import { createClient, parseBaseUrl, showPosition } from '../follower/client.js';
import { follow } from '../follower/follow.js';
import { endBrokenLine, writeLines } from '../follower/lines.js';
import { openState } from '../follower/state.js';
import { interval, INTERVAL, position } from './arguments.js';
import type { CommandContext, RegisterCommand } from './context.js';
import { addExamples, addNotes } from './output/help.js';
import { printLine } from './output/report.js';

interface FollowFlags {
  readonly baseUrl: string;
  readonly state: string;
  readonly since?: number;
  /** In milliseconds. */
  readonly interval?: number;
  readonly once?: boolean;
}

const NOTES = `Writes every created or updated entry to standard output as a line of NDJSON, oldest first. The position is saved in the
state file once the lines are written; if standard output is a file, once they are synced to disk. Every entry arrives
at least once. After a crash the last page may repeat and a line may be cut short: skip lines that are not JSON; their
entries repeat.

Set CATALOG_API_KEY to your key. "read -rs CATALOG_API_KEY && export CATALOG_API_KEY" keeps it out of the shell's
history.

Temporary failures are reported on standard error and retried; Retry-After is honoured. The exit code is 0 after SIGINT
or SIGTERM, when the reader of standard output closes it, or when --once has caught up. It is 1 if you need to act; the
message says how.

A mirror starts from a full copy of the catalogue. For a published copy, set --since to the position in its manifest. For
an export, use the state file that comes with it (catalog export --state). Without either, set --since to an hour before
the copy was started; the hour covers entries that were being written then. Applying an entry twice is harmless.`;

const EXAMPLES = [
  'catalog follow --base-url https://catalog.example.com --state mirror.json \\\n    >> changes.ndjson',
  'catalog follow --base-url https://catalog.example.com --state mirror.json \\\n    --since 1795218005 >> changes.ndjson',
];

export const registerFollow: RegisterCommand = (program, context) => {
  addExamples(addNotes(program.command('follow'), NOTES), EXAMPLES)
    .description("Follow a service's feed and write its changes as NDJSON, resuming where the last run stopped.")
    .requiredOption('--base-url <url>', 'service to follow: the URL before /api/v1')
    .requiredOption('--state <file>', 'file that keeps the position; created if missing')
    .option('--since <seconds>', 'position to start from if there is no state file: Unix time in seconds', position)
    .option('--interval <seconds>', INTERVAL, interval)
    .option('--once', 'exit once caught up')
    .action((flags: FollowFlags) => run(flags, context));
};

async function run(flags: FollowFlags, context: CommandContext): Promise<void> {
  const { stdout, stderr, signal } = context;
  const baseUrl = parseBaseUrl(flags.baseUrl);
  const key = context.clientKey();
  if (key === '') throw new OperatorError('Set the environment variable CATALOG_API_KEY to your API key.');
  const readPage = createClient({ baseUrl, key });
  const state = await openState(flags.state, baseUrl);
  const ending = AbortSignal.any([signal, state.lost]);
  try {
    const since = state.since ?? flags.since ?? requireSince(flags.state);
    printLine(stderr, `Following ${baseUrl} from ${showPosition(since)}.`);
    await endBrokenLine(stdout);
    const reached = await follow({
      readPage,
      since,
      once: flags.once ?? false,
      intervalMs: flags.interval,
      deliver: ({ data }) => writeLines(stdout, data, ending),
      save: (next) => state.save(next),
      signal: ending,
      onFailure: (reason, waitMs) => printLine(stderr, `${reason}. Retrying in ${Math.ceil(waitMs / 1000)} s.`),
    });
    state.lost.throwIfAborted();
    printLine(stderr, `Stopped at ${showPosition(reached)}.`);
  } catch (error) {
    // The reader of the lines has closed: `catalog follow | head`.
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error;
  } finally {
    await state.close();
  }
}

function requireSince(file: string): never {
  throw new OperatorError(
    `The state file ${file} does not exist yet. Set --since to the Unix time to start from. A mirror first needs a full copy of ` +
      'the catalogue. Use the state file that came with it, or set --since to an hour before the copy was started.',
  );
}
