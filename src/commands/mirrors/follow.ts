import { OperatorError } from '../../errors.js';
import { createClient, parseBaseUrl, PositionRefused, showPosition } from '../../client/client.js';
import { follow } from '../../client/follow.js';
import { endBrokenLine, writeLines } from '../../client/lines.js';
import { retryPolicy } from '../../client/retry.js';
import { openState } from '../../client/state.js';
import { CLIENT_KEY_NOTE, interval, INTERVAL, position, requireClientKey } from '../arguments.js';
import type { CommandContext, RegisterCommand } from '../context.js';
import { addExamples, addNotes } from '../output/help.js';
import { ProgressDisplay } from '../output/progress-display.js';
import { reporter } from './observe.js';

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

${CLIENT_KEY_NOTE}

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
  const { once = false } = flags;
  const baseUrl = parseBaseUrl(flags.baseUrl);
  const fetchPage = createClient({ baseUrl, key: requireClientKey(context) });
  const state = await openState(flags.state, baseUrl);
  const ending = AbortSignal.any([signal, state.lost]);
  const display = new ProgressDisplay(stderr, { label: 'entries', isEnabled: false });
  const observe = reporter(display, baseUrl);
  try {
    const since = state.since ?? flags.since ?? requireSince(flags.state);
    observe({ kind: 'following', position: since, verified: undefined });
    await endBrokenLine(stdout);
    const reached = await follow({
      fetchPage,
      since,
      feedId: state.feedId,
      once,
      retryPolicy: retryPolicy(once),
      intervalMs: flags.interval,
      async store({ data, meta }, _since, _requestedAt, feedId) {
        if (data.length > 0) await writeLines(stdout, data, ending);
        await state.save(meta.next_since, feedId);
      },
      signal: ending,
      observe,
    });
    state.lost.throwIfAborted();
    display.printLine(`Stopped at ${showPosition(reached)}.`);
  } catch (error) {
    if (error instanceof PositionRefused) throw startAgain(error);
    // The reader of the lines has closed: `catalog follow | head`.
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error;
  } finally {
    await state.close();
  }
}

/** @returns the same error with what a follower has to do */
function startAgain(refused: PositionRefused): OperatorError {
  const { message, oldestSince } = refused;
  const advice =
    'Get a fresh full copy of the catalogue and continue from its position: that in the manifest of a published copy, or ' +
    'the state file that comes with an export. Without either, delete the state file and set --since to an hour before ' +
    `the copy was started${oldestSince === undefined ? '' : `, or to ${oldestSince} if that is later`}.`;
  return new OperatorError(message, { advice, cause: refused });
}

function requireSince(file: string): never {
  throw new OperatorError(`The state file ${file} does not exist yet.`, {
    advice:
      'Set --since to the Unix time to start from. A mirror first needs a full copy of the catalogue. Use the position ' +
      'in its manifest, the state file that came with it, or an hour before it was started.',
  });
}
