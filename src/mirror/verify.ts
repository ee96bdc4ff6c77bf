import { to as copyTo } from 'pg-copy-streams';
import { copyStatement } from '../catalog/publish/publish.js';
import { fileOf, type Manifest } from '../copies/manifest.js';
import { fromSeconds, toRfc3339 } from '../platform/time/micros.js';
import { CopyUnusable, type CopySource } from './copy-source.js';
import { readRows, type ComparedRow } from './rows.js';
import type { MirrorStore } from './store.js';

/** In what way a row of a mirror differs from the copy. */
type Fault = 'missing' | 'changed' | 'stamp' | 'extra';

/** The result of a comparison, as numbers of rows. */
export interface Comparison {
  /** The position of the copy, in seconds. */
  readonly copyPosition: number;
  /** Rows of the copy. */
  readonly copied: number;
  /** Rows of the mirror. */
  readonly mirrored: number;
  /** Rows that the mirror has from later in the feed. Another copy can confirm them. */
  readonly newer: number;
  /** Rows of the copy that the mirror has not reached yet. */
  readonly ahead: number;
  /** The sum of the faults. */
  readonly differences: number;
  /** Rows that the mirror lacks, that have the stamp of the copy but not its content, that have a stamp which is wrong, and that the catalogue does not have. */
  readonly faults: Readonly<Record<Fault, number>>;
  /** The first faults by id. */
  readonly first: readonly { readonly svcId: string; readonly fault: Fault }[];
}

/** How many faults a comparison lists. */
const LISTED = 10;

/**
 * Compares a mirror with a copy. Each row of the copy must be in the mirror, with the same content or with a newer stamp,
 * and the mirror must have no other row with a stamp up to the position of the copy. Both are read once, sorted by id, so
 * memory stays flat at any size. The mirror is read as of one moment and may be written meanwhile.
 *
 * @param store - a session of its own, which is of no use after a failure
 * @throws OperatorError when the two cannot be compared; CopyUnavailable, CopyUnusable
 */
export async function compare(
  store: MirrorStore,
  manifest: Manifest,
  source: CopySource,
  signal: AbortSignal,
): Promise<Comparison> {
  const { name, rows: expected } = fileOf(manifest, 'titles');
  const { session } = store;
  await session.query('begin isolation level repeatable read read only');
  const position = await store.requireComparable(manifest);
  const [copyEnd, mirrorEnd] = [manifest.position, position].map((at) => toRfc3339(fromSeconds(at)));
  const copy = new Cursor(readRows(name, source.readTitles(manifest, signal)));
  // An error that nobody waits for would end the process: the session ends under it when the copy fails.
  const stored = session.query(copyTo(copyStatement('titles', `${store.schema}.titles`))).on('error', () => undefined);
  const mirror = new Cursor(readRows('of the mirror', stored));
  const faults = { missing: 0, changed: 0, stamp: 0, extra: 0 };
  const first: { svcId: string; fault: Fault }[] = [];
  let newer = 0;
  let ahead = 0;
  const note = ({ id: svcId }: ComparedRow, fault: Fault): void => {
    faults[fault] += 1;
    if (first.length < LISTED) first.push({ svcId, fault });
  };
  /** A stamp from after the copy is right unless the mirror has not come so far. */
  const isNewer = ({ updatedAt }: ComparedRow): boolean =>
    updatedAt > (copyEnd ?? '') && updatedAt <= (mirrorEnd ?? '');
  const isAhead = ({ updatedAt }: ComparedRow): boolean => updatedAt > (mirrorEnd ?? '');
  for (;;) {
    if (copy.isEmpty) await copy.fill();
    if (mirror.isEmpty) await mirror.fill();
    const { row: wanted } = copy;
    const { row: found } = mirror;
    if (wanted !== undefined && (found === undefined || wanted.id < found.id)) {
      if (isAhead(wanted)) ahead += 1;
      else note(wanted, 'missing');
      copy.next();
    } else if (found !== undefined && (wanted === undefined || found.id < wanted.id)) {
      if (isNewer(found)) newer += 1;
      else note(found, 'extra');
      mirror.next();
    } else if (wanted === undefined || found === undefined) {
      break;
    } else {
      if (wanted.updatedAt === found.updatedAt) {
        if (wanted.content !== found.content) note(found, 'changed');
      } else if (wanted.updatedAt < found.updatedAt && isNewer(found)) newer += 1;
      else if (wanted.updatedAt > found.updatedAt && isAhead(wanted)) ahead += 1;
      else note(found, 'stamp');
      copy.next();
      mirror.next();
    }
  }
  await session.query('commit');
  if (copy.rows !== expected) {
    throw new CopyUnusable(
      `The file ${name} of the published copy has ${copy.rows} rows, and the manifest says ${expected}.`,
    );
  }
  const differences = Object.values(faults).reduce((sum, count) => sum + count, 0);
  const numbers = { copied: copy.rows, mirrored: mirror.rows, newer, ahead, differences };
  return { copyPosition: manifest.position, ...numbers, faults, first };
}

/** The rows of one side, in the order of their ids. */
class Cursor {
  #group: readonly ComparedRow[] = [];
  #place = 0;
  #isAtEnd = false;
  /** Rows passed so far. */
  rows = 0;

  constructor(private readonly groups: AsyncGenerator<readonly ComparedRow[], void>) {}

  /** The current row; undefined at the end, and before {@link fill}. */
  get row(): ComparedRow | undefined {
    return this.#group[this.#place];
  }

  /** Whether more has to be read. */
  get isEmpty(): boolean {
    return this.#place >= this.#group.length && !this.#isAtEnd;
  }

  async fill(): Promise<void> {
    while (this.isEmpty) {
      const next = await this.groups.next();
      this.#isAtEnd = next.done === true;
      this.#group = next.value ?? [];
      this.#place = 0;
    }
  }

  next(): void {
    this.#place += 1;
    this.rows += 1;
  }
}
