import { InvalidArgumentError } from 'commander';
import { parseMetricsAddress, type MetricsAddress } from '../../config/parsers.js';
import { showPosition } from '../../client/client.js';
import { mirror } from '../../client/mirror/mirror.js';
import { retryPolicy } from '../../client/retry.js';
import { serveMetrics, type MetricsServer } from '../../http/telemetry/metrics-server.js';
import { interval, INTERVAL } from '../arguments.js';
import type { CommandContext, RegisterCommand } from '../context.js';
import { ProgressDisplay } from '../output/progress-display.js';
import { addExamples, addNotes } from '../output/help.js';
import { MirrorStatus } from './mirror-status.js';
import { reporter } from './observe.js';
import { registerVerify } from './verify.js';
import {
  addMirrorOptions,
  CONNECTION_NOTES,
  parseMirrorFlags,
  withStoreErrors,
  type MirrorFlags,
} from './mirror-options.js';

interface Flags extends MirrorFlags {
  /** In milliseconds. */
  readonly interval?: number;
  readonly once?: boolean;
  readonly metricsAddress?: MetricsAddress;
}

const NOTES = `Copies all titles into your PostgreSQL database, into the table titles of the schema, and keeps them up to date.
Starts from the newest published copy or, if there is none, from the feed, as long as the feed still has every title.
Rows and position are committed in one transaction, so the command resumes exactly where it stopped, even after a crash.
If the feed refuses the position, after 30 days offline or after a restore, the command loads the newest copy and reports
what changed. Readers of the table never see a partial copy. Only a copy that names a new feed can replace the rows of the
one before, and a load that removes more than a tenth of the rows requires --allow-removals.

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
    .description('Copy all titles into your PostgreSQL database and keep them up to date.')
    .option('--interval <seconds>', INTERVAL, interval)
    .option('--once', 'exit once caught up')
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
  const options = await parseMirrorFlags(flags, context);
  const display = new ProgressDisplay(stderr, { label: 'titles', isEnabled: true });
  const report = reporter(display, options.baseUrl);
  const status = new MirrorStatus();
  let server: MetricsServer | undefined;
  try {
    if (flags.metricsAddress !== undefined) {
      server = await serveMetrics(
        flags.metricsAddress,
        status.metrics,
        { error: () => display.printLine('The metrics could not be read.') },
        (request, response) => status.answer(request, response),
        '--metrics-address',
      );
      display.printLine(`Metrics are at ${server.url}.`);
    }
    const position = await withStoreErrors(() =>
      mirror({
        ...options,
        once,
        intervalMs: flags.interval,
        retryPolicy: retryPolicy(once),
        signal,
        observe(observation) {
          status.observe(observation);
          report(observation);
        },
      }),
    );
    display.stop();
    display.printLine(position === undefined ? 'Stopped.' : `Stopped at ${showPosition(position)}.`);
  } finally {
    display.stop();
    await server?.close();
  }
}

function metricsAddress(value: string): MetricsAddress {
  try {
    const address = parseMetricsAddress(value);
    if (address !== undefined) return address;
  } catch {
    // As for "off".
  }
  throw new InvalidArgumentError('Use host:port, such as 127.0.0.1:9465.');
}
