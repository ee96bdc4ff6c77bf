import fc from 'fast-check';
import { sample } from '../../support/catalog/chance.js';

/** What a writer does within a transaction. Ids are some that all writers share and some new ones. */
export type Step =
  | {
      readonly does: 'insert' | 'copy' | 'update' | 'touch' | 'upsert' | 'insert-or-ignore' | 'people';
      readonly shared: readonly string[];
      readonly fresh: number;
    }
  | { readonly does: 'bulk'; readonly prefix: string; readonly rows: number }
  | { readonly does: 'read' | 'cut' }
  | { readonly does: 'hold'; readonly ms: number; readonly where: 'server' | 'client' }
  | { readonly does: 'savepoint'; readonly steps: readonly Step[]; readonly keep: boolean };

/** One transaction of a writer. */
export type Transaction =
  | { readonly kind: 'statement'; readonly step: Step }
  | {
      readonly kind: 'transaction';
      readonly isolation: 'read committed' | 'repeatable read' | 'serializable';
      readonly steps: readonly Step[];
      readonly end: 'commit' | 'rollback';
    }
  | { readonly kind: 'import'; readonly shared: readonly string[]; readonly fresh: number };

/** How much is done. */
export interface PlanSize {
  readonly writers: number;
  /** For each writer. */
  readonly transactions: number;
  /** The longest time that a transaction pauses at one place, in milliseconds. */
  readonly longestHoldMs: number;
  /** Rows of the largest single statement. */
  readonly bulkRows: number;
  /** Whether connections are lost in the middle of transactions. */
  readonly cuts: boolean;
}

/** The size of a run in `make test`. A control in test/lab shows that it suffices to find a broken feed. */
export const SHORT: PlanSize = { writers: 6, transactions: 8, longestHoldMs: 100, bulkRows: 300, cuts: false };

/** Ids that exist from the beginning, and that all writers write to. */
export const SHARED_IDS = Array.from({ length: 150 }, (_, index) => `shared-${index}`);

/** Plans what each writer does, in order. The same seed gives the same plan. */
export function planWriters(seed: number, size: PlanSize): Transaction[][] {
  return Array.from({ length: size.writers }, (_, writer) => [
    ...(writer === 0 ? eachEnd(size) : []),
    ...sample(seed + writer, planOf(writer, size)),
  ]);
}

/** Transactions that end in each planned way but a commit: by chance, a run might have none of one. */
function eachEnd({ cuts }: PlanSize): Transaction[] {
  const insert: Step = { does: 'insert', shared: [], fresh: 1 };
  const common = { kind: 'transaction', isolation: 'read committed' } as const;
  return [
    { ...common, steps: [insert], end: 'rollback' },
    ...(cuts ? [{ ...common, steps: [insert, { does: 'cut' }], end: 'commit' } as const] : []),
  ];
}

const shared = (most: number): fc.Arbitrary<string[]> =>
  fc.uniqueArray(fc.constantFrom(...SHARED_IDS), { minLength: 1, maxLength: most });

/** A value, by chance none: an array to spread. */
const perhaps = <T>(percent: number, value: fc.Arbitrary<T>): fc.Arbitrary<T[]> =>
  fc.oneof(
    { weight: percent, arbitrary: value.map((one) => [one]) },
    { weight: 100 - percent, arbitrary: fc.constant<T[]>([]) },
  );

const write: fc.Arbitrary<Step> = fc.oneof(
  ...(
    [
      { weight: 3, does: 'insert', most: 0, fresh: [1, 3] },
      { weight: 1, does: 'copy', most: 0, fresh: [1, 5] },
      { weight: 6, does: 'update', most: 3, fresh: [0, 0] },
      { weight: 2, does: 'touch', most: 3, fresh: [0, 0] },
      { weight: 3, does: 'upsert', most: 2, fresh: [1, 1] },
      { weight: 1, does: 'insert-or-ignore', most: 2, fresh: [1, 1] },
      { weight: 1, does: 'people', most: 0, fresh: [1, 1] },
    ] as const
  ).map(({ weight, does, most, fresh: [min, max] }) => ({
    weight,
    arbitrary: fc.record({
      does: fc.constant(does),
      shared: most === 0 ? fc.constant<string[]>([]) : shared(most),
      fresh: fc.integer({ min, max }),
    }),
  })),
);

function planOf(
  writer: number,
  { transactions, longestHoldMs, bulkRows, cuts }: PlanSize,
): fc.Arbitrary<Transaction[]> {
  const hold: fc.Arbitrary<Step> = fc.record({
    does: fc.constant('hold'),
    // Mostly short.
    ms: fc.integer({ min: 0, max: 1000 }).map((part) => Math.ceil(longestHoldMs * (part / 1000) ** 6)),
    where: fc.constantFrom('server', 'client'),
  });
  const bulk: fc.Arbitrary<Step> = fc.record({
    does: fc.constant('bulk'),
    // Two writers share a prefix, so bulk statements also meet rows of others.
    prefix: fc.constant(`bulk${writer >> 1}`),
    rows: fc.integer({ min: bulkRows >> 1, max: bulkRows }),
  });
  const savepoint: fc.Arbitrary<Step> = fc.record({
    does: fc.constant('savepoint'),
    steps: fc.tuple(write, hold),
    keep: fc.boolean(),
  });
  const statement = (step: fc.Arbitrary<Step>): fc.Arbitrary<Transaction> =>
    fc.record({ kind: fc.constant('statement'), step });
  const transaction = (steps: fc.Arbitrary<readonly Step[]>): fc.Arbitrary<Transaction> =>
    fc.record({
      kind: fc.constant('transaction'),
      isolation: fc.oneof(
        { weight: 8, arbitrary: fc.constant('read committed') },
        { weight: 2, arbitrary: fc.constantFrom('repeatable read', 'serializable') },
      ),
      steps,
      end: fc.constantFrom('commit', 'commit', 'commit', 'commit', 'rollback'),
    });
  const large: fc.Arbitrary<Transaction> = fc.oneof(
    fc.record({
      kind: fc.constant('import'),
      shared: shared(20),
      fresh: fc.integer({ min: 1, max: bulkRows }),
    }),
    statement(bulk),
    transaction(fc.tuple(write, bulk, hold)),
  );
  const change = fc.tuple(
    fc.oneof({ weight: 15, arbitrary: savepoint }, { weight: 85, arbitrary: write }),
    perhaps(40, hold),
  );
  const small = fc.oneof(
    { weight: 30, arbitrary: statement(write) },
    {
      weight: 70,
      arbitrary: transaction(
        fc
          .tuple(
            // A read takes no lock: others commit between the transaction's beginning and its first write.
            perhaps(50, fc.tuple(fc.constant<Step>({ does: 'read' }), hold)),
            fc.array(change, { minLength: 1, maxLength: 4 }),
            perhaps(cuts ? 10 : 0, fc.constant<Step>({ does: 'cut' })),
          )
          .map(([reads, changes, cut]) => [
            ...reads.flat(),
            ...changes.flatMap(([step, pause]) => [step, ...pause]),
            ...cut,
          ]),
      ),
    },
  );
  // Two of each writer's transactions are large.
  const every = Math.max(2, transactions >> 1);
  return fc.tuple(...Array.from({ length: transactions }, (_, number) => (number % every === 1 ? large : small)));
}
