import { Random } from './random.js';

/** One thing that a writer does within a transaction. */
export type Step =
  | { readonly does: 'insert' | 'copy'; readonly ids: readonly string[] }
  | { readonly does: 'update' | 'touch' | 'upsert' | 'insert-or-ignore'; readonly ids: readonly string[] }
  | { readonly does: 'bulk'; readonly prefix: string; readonly rows: number }
  | { readonly does: 'people' | 'read' }
  | { readonly does: 'hold'; readonly ms: number; readonly where: 'server' | 'client' }
  | { readonly does: 'savepoint'; readonly steps: readonly Step[]; readonly keep: boolean }
  /** The connection ends here, and what was not committed with it. */
  | { readonly does: 'cut'; readonly how: 'terminate' | 'destroy' };

/** One transaction of a writer. */
export type Transaction =
  | { readonly kind: 'statement'; readonly step: Step }
  | {
      readonly kind: 'transaction';
      readonly isolation: 'read committed' | 'repeatable read' | 'serializable';
      readonly steps: readonly Step[];
      readonly end: 'commit' | 'rollback';
    }
  | { readonly kind: 'import'; readonly ids: readonly string[] };

/** How much is done. */
export interface PlanSize {
  readonly writers: number;
  /** Of each writer. */
  readonly transactions: number;
  /** The longest that a transaction is held open on purpose at one place, in milliseconds. */
  readonly longestHoldMs: number;
  /** Rows of the largest single statement; 0 for neither bulk statements nor imports. */
  readonly bulkRows: number;
  /** Whether connections are cut in the middle of transactions. */
  readonly cuts: boolean;
}

/** Ids that exist from the beginning, and that all writers write to. */
export const SHARED_IDS = Array.from({ length: 150 }, (_, index) => `shared-${index}`);

/** What each writer does, in order. The same seed gives the same plan. */
export function planWriters(seed: number, size: PlanSize): Transaction[][] {
  const random = new Random(seed);
  return Array.from({ length: size.writers }, (_, index) => planWriter(random.part(index), index, size));
}

function planWriter(random: Random, writer: number, size: PlanSize): Transaction[] {
  let made = 0;
  const fresh = (count: number): string[] => Array.from({ length: count }, () => `w${writer}-${made++}`);
  const known = (most: number): string[] => [
    ...new Set(Array.from({ length: random.between(1, most) }, () => random.pick(SHARED_IDS))),
  ];
  // Each writer has two of these in its life, whatever the dice say.
  const large = size.bulkRows > 0 ? Math.max(2, Math.floor(size.transactions / 2)) : Infinity;

  function write(): Step {
    return random.weighed<() => Step>([
      [3, () => ({ does: 'insert', ids: fresh(random.between(1, 3)) })],
      [1, () => ({ does: 'copy', ids: fresh(random.between(1, 5)) })],
      [6, () => ({ does: 'update', ids: known(3) })],
      [2, () => ({ does: 'touch', ids: known(3) })],
      [3, () => ({ does: 'upsert', ids: [...known(2), ...fresh(1)] })],
      [1, () => ({ does: 'insert-or-ignore', ids: [...known(2), ...fresh(1)] })],
      [1, () => ({ does: 'people' })],
    ])();
  }

  function bulk(): Step {
    // Two writers share a prefix, so bulk statements meet rows of others too.
    return {
      does: 'bulk',
      prefix: `bulk${writer >> 1}`,
      rows: random.between(Math.ceil(size.bulkRows / 2), size.bulkRows),
    };
  }

  function hold(): Step {
    const ms = Math.ceil(size.longestHoldMs * random.real() ** 6);
    return { does: 'hold', ms, where: random.chance(0.5) ? 'server' : 'client' };
  }

  function transaction(number: number): Transaction {
    if (number % large === 1) {
      if (random.chance(0.5)) {
        const ids = [...known(20), ...fresh(random.between(1, 50)), ...bulkIds(random, writer, size.bulkRows)];
        return { kind: 'import', ids: [...new Set(ids)] };
      }
      const step = bulk();
      return random.chance(0.3)
        ? { kind: 'statement', step }
        : { kind: 'transaction', isolation: 'read committed', steps: [write(), step, hold()], end: 'commit' };
    }
    if (random.chance(0.3)) return { kind: 'statement', step: write() };
    const steps: Step[] = [];
    // First something that takes no lock: others commit between the transaction's beginning and its first write.
    if (random.chance(0.5)) steps.push({ does: 'read' }, hold());
    for (let i = random.between(1, 4); i > 0; i -= 1) {
      if (random.chance(0.15)) steps.push({ does: 'savepoint', steps: [write(), hold()], keep: random.chance(0.5) });
      else steps.push(write());
      if (random.chance(0.4)) steps.push(hold());
    }
    if (size.cuts && random.chance(0.1)) steps.push({ does: 'cut', how: random.chance(0.5) ? 'terminate' : 'destroy' });
    const isolation = random.weighed([
      [8, 'read committed'],
      [1, 'repeatable read'],
      [1, 'serializable'],
    ] as const);
    return { kind: 'transaction', isolation, steps, end: random.chance(0.2) ? 'rollback' : 'commit' };
  }

  return Array.from({ length: size.transactions }, (_, number) => transaction(number));
}

function bulkIds(random: Random, writer: number, most: number): string[] {
  return Array.from({ length: random.between(1, most) }, (_, index) => `bulk${writer >> 1}-${index + 1}`);
}
