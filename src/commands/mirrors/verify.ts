import type { Command } from 'commander';
import { OperatorError, UsageError } from '../../errors.js';
import { retryPolicy, type RetryOptions } from '../../client/retry.js';
import { requireManifest } from '../../client/mirror/copy-source.js';
import { MirrorStore } from '../../client/mirror/store.js';
import { verify, type Comparison } from '../../client/mirror/verify.js';
import type { CommandContext } from '../context.js';
import { ProgressDisplay } from '../output/progress-display.js';
import { printable } from '../../platform/text/plain-text.js';
import { addJsonCommand, report, type JsonFlag } from '../output/report.js';
import {
  addMirrorOptions,
  CONNECTION_NOTES,
  parseMirrorFlags,
  withStoreErrors,
  type MirrorFlags,
} from './mirror-options.js';
import { reporter } from './observe.js';
import { countOf, formatCount } from '../../platform/text/count.js';

interface Flags extends MirrorFlags, JsonFlag {
  readonly repair?: boolean;
}

const NOTES = `Reads the newest published copy, checks its hash, its number of rows and, with --public-key, its signature, and compares
it with the mirror row by row. Rows that the mirror has received from the feed since then may be newer. If rows differ,
the command prints the counts and the first few, and exits with code 1:
  missing  the mirror lacks the row
  changed  same updated_at, different content
  stamp    updated_at is neither the copy's nor a later one from the feed
  extra    the catalogue did not have the row when the copy was made

The exit code is also 1 if nothing could be compared, as while the mirror is still catching up with the copy; --json then prints no document. --repair moves the mirror back to the
position of the copy, so that it reads later changes again.

The mirror can keep running. The role must be able to read its tables and to create temporary ones, which every role may
do by default; --repair needs the same privileges as the mirror.

${CONNECTION_NOTES}`;

const EXAMPLE =
  'catalog mirror verify --from https://catalog.example.com \\\n    --into postgres://me@localhost/films --repair';

export function registerVerify(mirror: Command, context: CommandContext): void {
  addMirrorOptions(addJsonCommand(mirror, 'verify', EXAMPLE, NOTES))
    .description('Compare a mirror with the newest published copy.')
    .option('--repair', 'make differing rows match the copy, in one transaction')
    .action((flags: Flags) => withStoreErrors(() => run(flags, context)));
}

async function run(flags: Flags, context: CommandContext): Promise<void> {
  const { signal, stdout } = context;
  const { repair: repairs = false } = flags;
  if (flags.allowRemovals && !repairs) throw new UsageError('--allow-removals requires --repair.');
  const options = await parseMirrorFlags(flags, context);
  const { baseUrl, source } = options;
  const display = new ProgressDisplay(context.stderr, { label: 'copy', isEnabled: flags.json !== true });
  const retry: RetryOptions = {
    retryPolicy: retryPolicy(true),
    signal,
    observe: reporter(display, baseUrl),
  };
  let store: MirrorStore | undefined;
  try {
    const manifest = await requireManifest(source, retry);
    store = await MirrorStore.open(options, false, signal);
    const result = await verify(store, manifest, { ...options, ...retry, repairs });
    display.stop();
    report(stdout, flags.json, { ...result, repaired: repairs && result.differences > 0 }, textOf(result, repairs));
    if (result.differences > 0 && !repairs) {
      throw new OperatorError('The mirror differs from the copy.', {
        advice: 'Run the command again with --repair to correct it.',
      });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new OperatorError('Interrupted.', { advice: 'Run the command again to check the mirror.', cause: error });
  } finally {
    display.stop();
    store?.close();
  }
}

function textOf(result: Comparison, isRepaired: boolean): string {
  const { copyOf, copied, mirrored, newer, differences, faults, first } = result;
  const parts = Object.entries(faults).map(([fault, rows]) => `${formatCount(rows)} ${fault}`);
  return [
    `Copy of ${copyOf}: ${formatCount(copied)} rows; the mirror has ${formatCount(mirrored)}, ${formatCount(newer)} of them newer.`,
    differences === 0
      ? `${newer > 0 ? 'All other rows match' : 'The mirror matches the copy'}.`
      : `${countOf(differences, 'row')} ${differences === 1 ? 'differs' : 'differ'}: ${parts.join(', ')}.`,
    ...first.map(({ svcId, fault }) => `  ${fault.padEnd(7)}  ${printable(svcId)}`),
    ...(isRepaired && differences > 0 ? ['Repaired.'] : []),
  ].join('\n');
}
