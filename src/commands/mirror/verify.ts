import type { Command } from 'commander';
import { OperatorError } from '../../errors.js';
import { showPosition } from '../../follower/client.js';
import { stageCopy } from '../../mirror/begin.js';
import { repairByStaged } from '../../mirror/merge.js';
import { MirrorStore } from '../../mirror/store.js';
import { compare, type Comparison } from '../../mirror/verify.js';
import type { CommandContext } from '../context.js';
import { addNotes } from '../output/help.js';
import { addJsonCommand, report } from '../output/report.js';
import {
  addMirrorOptions,
  CONNECTION_NOTES,
  readMirrorOptions,
  withStoreErrors,
  type MirrorFlags,
} from './mirror-options.js';

interface Flags extends MirrorFlags {
  readonly repair?: boolean;
  readonly json?: boolean;
}

const NOTES = `Reads the newest published copy, checks its hash, its number of rows and its signature, and compares each row with the
mirror. A row may be newer than the copy if the mirror has followed the feed that far. The exit code is 1 if a row
differs, with the numbers and the first rows:
  missing  the mirror lacks the row
  changed  the row has the stamp of the copy, but another content
  stamp    the row has a stamp that it never had up to the copy
  extra    the catalogue did not have the row at the time of the copy

The mirror may run meanwhile. Read access to its tables is enough, except for --repair.

${CONNECTION_NOTES}`;

const EXAMPLE = 'catalog mirror verify --from https://catalog.example.com --repair';

export function registerVerify(mirror: Command, context: CommandContext): void {
  addMirrorOptions(addNotes(addJsonCommand(mirror, 'verify', EXAMPLE), NOTES))
    .description('Compare a mirror with the newest published copy.')
    .option('--repair', 'take the rows of the copy where they differ, in one transaction')
    .action((flags: Flags) => withStoreErrors(() => run(flags, context)));
}

async function run(flags: Flags, context: CommandContext): Promise<void> {
  const { signal, stdout } = context;
  const { source, store: options, copiesUrl } = await readMirrorOptions(flags, context);
  const manifest = await source.readManifest(signal);
  if (manifest === undefined) throw new OperatorError(`No copy is published at ${copiesUrl}/.`);
  const store = await MirrorStore.open(options, false);
  const interrupt = (): void => store.close();
  signal.addEventListener('abort', interrupt, { once: true });
  try {
    const result = await compare(store, manifest, source, signal);
    const isToRepair = flags.repair === true && result.differences > 0;
    if (isToRepair) await stageCopy(store, manifest, { source, signal, onProgress: () => undefined });
    const repaired = isToRepair ? await repairByStaged(store, manifest) : undefined;
    const lines = describe(result);
    if (repaired) {
      const { inserted, changed, deleted } = repaired;
      lines.push(`Repaired: ${count(inserted)} inserted, ${count(changed)} changed, ${count(deleted)} deleted.`);
    }
    report(stdout, flags.json, { ...result, ...(repaired && { repaired }) }, lines.join('\n'));
    if (result.differences > 0 && !repaired) {
      throw new OperatorError('The mirror differs from the copy. Take the rows of the copy with --repair.');
    }
  } catch (error) {
    if (signal.aborted) throw new OperatorError('Interrupted. Nothing was repaired.', { cause: error });
    throw error;
  } finally {
    signal.removeEventListener('abort', interrupt);
    store.close();
  }
}

function describe({ copyPosition, copied, mirrored, newer, ahead, differences, faults, first }: Comparison): string[] {
  const parts = Object.entries(faults).map(([fault, rows]) => `${count(rows)} ${fault}`);
  return [
    `Copy of ${showPosition(copyPosition)}: ${count(copied)} rows; the mirror has ${count(mirrored)}, ${count(newer)} of them newer.`,
    ...(ahead > 0 ? [`The mirror has not reached ${count(ahead)} rows of the copy yet.`] : []),
    differences === 0 ? 'All others are equal.' : `${count(differences)} rows differ: ${parts.join(', ')}.`,
    ...first.map(({ svcId, fault }) => `  ${fault.padEnd(7)}  ${svcId}`),
  ];
}

function count(rows: number): string {
  return rows.toLocaleString('en-US');
}
