import { InvalidArgumentError } from 'commander';
import { parseMetricsAddress, type MetricsAddress } from '../../config/parsers.js';
import { OperatorError } from '../../errors.js';
import { createClient, createTitleCounter, showPosition } from '../../client/client.js';
import { retryPolicy, type RetryOptions } from '../../client/retry.js';
import { serveMetrics, type MetricsServer } from '../../http/telemetry/metrics-server.js';
import { mirror } from '../../client/mirror/mirror.js';
import { MirrorStatus } from '../../client/mirror/status.js';
import { verifyNewCopies, verifyNewCopy, type VerifyNewCopiesOptions } from '../../client/mirror/verify.js';
import { interval, INTERVAL } from '../arguments.js';
import type { CommandContext, RegisterCommand } from '../context.js';
import { ProgressDisplay } from '../output/progress-display.js';
import { addExamples, addNotes } from '../output/help.js';
import { retryingLine } from '../output/report.js';
import { registerVerify } from './verify.js';
import {
  addMirrorOptions,
  CONNECTION_NOTES,
  readMirrorOptions,
  withStoreErrors,
  type MirrorFlags,
} from './mirror-options.js';

interface Flags extends MirrorFlags {
  /** In milliseconds. */
  readonly interval?: number;
  readonly once?: boolean;
  readonly verify?: boolean;
  readonly metricsAddress?: MetricsAddress;
}

const NOTES = `Copies all titles into a PostgreSQL database of yours, into the table titles of the schema, and keeps them up to date.
Starts from the newest published copy or, if there is none, from the feed, as long as the feed still has every title.
Rows and position are committed in one transaction, so the command resumes exactly where it stopped, even after a crash.
If the feed refuses the position, after 30 days offline or after a restore, the command loads the newest copy and reports
what changed. Readers of the table never see half a copy.

${CONNECTION_NOTES}

Temporary failures are reported on standard error and retried, and Retry-After is honoured. With --once, the command gives
up after five minutes of waits, and at the first failure of your database. The exit code is 0 after SIGINT or SIGTERM, and
when --once has caught up. Otherwise it is 1, and the message says what to do.`;

const EXAMPLES = [
  'catalog mirror --from https://catalog.example.com \\\n    --into postgres://me@localhost/films',
  'catalog mirror --from https://catalog.example.com --once',
];

export const registerMirror: RegisterCommand = (program, context) => {
  const command = addMirrorOptions(addExamples(addNotes(program.command('mirror'), NOTES), EXAMPLES))
    .description('Copy all titles into a PostgreSQL database of yours and keep them up to date.')
    .option('--interval <seconds>', INTERVAL, interval)
    .option('--once', 'exit once caught up')
    .option('--verify', 'compare the mirror with each new copy, once; with --once, exit with code 1 if rows differed')
    .option(
      '--metrics-address <host:port>',
      'serve /metrics and /readyz on this address; port 0 picks a free port',
      metricsAddress,
    )
    .action((flags: Flags) => run(flags, context));
  registerVerify(command, context);
};

async function run(flags: Flags, context: CommandContext): Promise<void> {
  const { stderr, signal } = context;
  const { once = false } = flags;
  const { client, source, store } = await readMirrorOptions(flags, context);
  const status = new MirrorStatus();
  const display = new ProgressDisplay(stderr, { label: 'titles', isEnabled: true });
  const print = (line: string): void => display.printLine(line);
  const ending = new AbortController();
  const retry = {
    retryPolicy: retryPolicy(once),
    signal,
    onFailure: (reason: string, waitMs: number) => print(retryingLine(reason, waitMs)),
  } satisfies RetryOptions;
  const copies = { ...retry, signal: AbortSignal.any([signal, ending.signal]), store, source, status, print };
  let verifying: Promise<void> | undefined;
  let server: MetricsServer | undefined;
  try {
    if (flags.metricsAddress !== undefined) {
      server = await serveMetrics(
        flags.metricsAddress,
        status.metrics,
        { error: () => print('The metrics could not be read.') },
        (request, response) => status.answer(request, response),
        '--metrics-address',
      );
      print(`Metrics are at ${server.url}.`);
    }
    const reached = await withStoreErrors(() =>
      mirror({
        ...store,
        baseUrl: client.baseUrl,
        source,
        readPage: createClient(client),
        countTitles: createTitleCounter(client),
        once,
        intervalMs: flags.interval,
        ...retry,
        status,
        onProgress: (progress) => display.update(progress),
        print,
        onFollowing() {
          display.stop();
          if (flags.verify && !once) verifying ??= verifyNewCopies(copies);
        },
      }),
    );
    await verifying;
    const differences = flags.verify && once && !signal.aborted ? await compare(copies) : 0;
    display.stop();
    print(reached === undefined ? 'Stopped.' : `Stopped at ${showPosition(reached)}.`);
    if (differences > 0) {
      throw new OperatorError(
        'The mirror differs from the copy. Run "catalog mirror verify" to see how; --repair corrects it.',
      );
    }
  } finally {
    ending.abort();
    display.stop();
    await server?.close();
  }
}

/** @returns how many rows differ; 0 also if the signal ends the comparison */
function compare(options: VerifyNewCopiesOptions): Promise<number> {
  return withStoreErrors(() => verifyNewCopy(options)).catch((error: unknown) => {
    if (options.signal.aborted) return 0;
    throw error;
  });
}

function metricsAddress(value: string): MetricsAddress {
  const parse = parseMetricsAddress('127.0.0.1');
  try {
    const address = parse(value);
    if (address !== undefined) return address;
  } catch {
    // As for "off".
  }
  throw new InvalidArgumentError('Use host:port, such as 127.0.0.1:9465.');
}
