import { InvalidArgumentError } from 'commander';
import { parseMetricsAddress, type MetricsAddress } from '../../config/parsers.js';
import { OperatorError } from '../../errors.js';
import { createClient, createTitleCounter, showPosition } from '../../follower/client.js';
import { DEFAULT_PATIENCE } from '../../follower/retry.js';
import { serveMetrics, type MetricsServer } from '../../http/telemetry/metrics-server.js';
import type { Beginning } from '../../mirror/begin.js';
import { mirror } from '../../mirror/mirror.js';
import { MirrorStatus } from '../../mirror/status.js';
import { verifyNewCopies, verifyNewCopy } from '../../mirror/verify.js';
import { interval, INTERVAL } from '../arguments.js';
import type { CommandContext, RegisterCommand } from '../context.js';
import { ProgressDisplay } from '../import/progress-display.js';
import { addExamples, addNotes } from '../output/help.js';
import { printLine } from '../output/report.js';
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

Temporary failures are reported on standard error and retried, and Retry-After is honoured. With --once, a failure of
your database ends the command. The exit code is 0 after SIGINT or SIGTERM, and when --once has caught up. It is 1 if
you need to act; the message says how.`;

const EXAMPLES = [
  'catalog mirror --from https://catalog.example.com \\\n    --into postgres://me@localhost/films',
  'catalog mirror --from https://catalog.example.com --once',
];

export const registerMirror: RegisterCommand = (program, context) => {
  const command = addMirrorOptions(addExamples(addNotes(program.command('mirror'), NOTES), EXAMPLES))
    .description('Copy all titles into a PostgreSQL database of yours and keep them up to date.')
    .option('--interval <seconds>', INTERVAL, interval)
    .option('--once', 'exit once caught up')
    .option('--verify', 'compare the mirror with each new copy; with --once, exit with code 1 if a row differs')
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
  const { client, copiesUrl, source, store } = await readMirrorOptions(flags, context);
  const status = new MirrorStatus();
  const display = new ProgressDisplay(stderr, { label: 'titles', isEnabled: true });
  const print = (line: string): void => display.printLine(line);
  const copies = { store, source, status, signal, print };
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
        copiesUrl,
        source,
        readPage: createClient(client),
        countTitles: createTitleCounter(client),
        signal,
        once: flags.once ?? false,
        intervalMs: flags.interval,
        patience: DEFAULT_PATIENCE,
        status,
        onProgress: (progress) => display.update(progress),
        onFailure: (reason, waitMs) => print(`${reason}. Retrying in ${Math.ceil(waitMs / 1000)} s.`),
        onRefused: (position) =>
          print(`The feed no longer accepts the position ${showPosition(position)}. Loading the newest copy.`),
        onBegun(beginning) {
          display.stop();
          if ('inserted' in beginning) print(describe(beginning));
          print(`Following ${client.baseUrl} from ${showPosition(beginning.position)}.`);
          if (flags.verify && !flags.once) verifying ??= verifyNewCopies(copies);
        },
      }),
    );
    await verifying;
    const differences = flags.verify && flags.once && !signal.aborted ? await verifyNewCopy(copies) : 0;
    printLine(stderr, reached === undefined ? 'Stopped.' : `Stopped at ${showPosition(reached)}.`);
    if (differences > 0) {
      throw new OperatorError(
        'The mirror differs from the copy. Run "catalog mirror verify" to see how; --repair corrects it.',
      );
    }
  } finally {
    display.stop();
    await server?.close();
  }
}

function describe({ inserted, changed, deleted, copyOf }: Beginning): string {
  const numbers = Object.entries({ inserted, changed, deleted }).map(
    ([what, count]) => `${count.toLocaleString('en-US')} ${what}`,
  );
  const source = copyOf === undefined ? 'the whole feed' : `the copy of ${copyOf}`;
  return `Loaded ${source}: ${numbers.join(', ')}.`;
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
