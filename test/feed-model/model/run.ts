import type { Knex } from 'knex';
import { verifyCounts } from '../../../src/catalog/counts.js';
import { eventually } from '../../support/eventually.js';
import {
  startFollower,
  startProgramMirror,
  type FeedAddress,
  type ModelFollower,
  type ProgramMirror,
} from './follower.js';
import { Mirror, readCatalogue, toMicros, type Violation } from './mirror.js';
import { planWriters, SHARED_IDS, type PlanSize } from './plan.js';
import { runWriter, type Tally } from './writer.js';

/** A catalogue that is written to, and the service of its feed. */
export interface ModelCatalogue extends FeedAddress {
  readonly databaseUrl: string;
  readonly db: Knex;
}

/** Something that goes wrong. */
export type Disturbance = (program?: ProgramMirror) => Promise<unknown>;

export interface ModelOptions {
  readonly seed: number;
  readonly size: PlanSize;
  /** Spread evenly over the run. */
  readonly disturbances?: readonly Disturbance[];
  /** Where copies for a mirror in a process of its own are, which disturbances can kill. None by default. */
  readonly copiesUrl?: string;
  /** Called before each transaction. */
  readonly before?: () => Promise<void>;
  /** Called after the last transaction, before followers must have everything. */
  readonly settle?: () => Promise<void>;
}

/** The result of a run. */
export interface ModelRun {
  readonly violations: readonly Violation[];
  readonly tally: Tally;
  /** The number of entries that each follower received. */
  readonly delivered: Readonly<Record<string, number>>;
  /** How often each follower had to take a fresh copy. */
  readonly copies: readonly number[];
}

/** Nearly the whole window of the feed, in seconds. */
const LONG_AGO = 30 * 86_400 - 600;

/** How long before its full copy a follower begins, in seconds: longer than the model's transactions hold the lock. */
const COPY_MARGIN = 60;

/** Runs writers and followers at the same time, and checks at the end that every follower has the whole catalogue. */
export async function runModel(catalogue: ModelCatalogue, options: ModelOptions): Promise<ModelRun> {
  const { db, databaseUrl } = catalogue;
  const { before, disturbances = [] } = options;
  const begin = Math.floor(Date.now() / 1000) - 10;
  await db('titles').insert(SHARED_IDS.map((id) => ({ svc_id: id, media_type: 'movie', title: 'At first' })));

  const follower = (name: string, since: number, pace: Parameters<typeof startFollower>[3]): ModelFollower =>
    startFollower(catalogue, new Mirror(name, toMicros(since)), since, pace);
  const { copiesUrl } = options;
  const program = copiesUrl === undefined ? undefined : await startProgramMirror(catalogue, copiesUrl);
  const followers: ModelFollower[] = [
    follower('eager', begin, { intervalMs: 5 }),
    follower('patient, from long ago', begin - LONG_AGO, { intervalMs: 700 }),
    follower('slow', begin, { intervalMs: 50, deliverMs: 30 }),
  ];

  const tally: Tally = { committed: 0, rolledBack: 0, conflicted: 0, lost: 0 };
  const done = (): number => tally.committed + tally.rolledBack + tally.conflicted + tally.lost;
  const plans = planWriters(options.seed, options.size);
  const total = plans.reduce((sum, { length }) => sum + length, 0);
  let isWriting = true;
  const writers = Promise.all(
    plans.map((transactions, index) => runWriter({ name: `w${index}`, databaseUrl, transactions, tally, before })),
  ).finally(() => (isWriting = false));
  const share = (part: number): Promise<unknown> =>
    eventually(`${part} of all transactions are over`, () => done() >= part * total || !isWriting, Infinity);

  // One after the other, because a server that starts while PostgreSQL restarts would give up.
  const disturb = async (): Promise<void> => {
    for (const [index, act] of disturbances.entries()) {
      await share((index + 1) / (disturbances.length + 1));
      await act(program);
    }
  };

  const outcomes: PromiseSettledResult<unknown>[] = await Promise.allSettled([
    writers,
    disturb(),
    share(0.3).then(async () => followers.push(await startLate(catalogue, 'from the newest entry of its copy', 0))),
    share(0.6).then(async () => followers.push(await startLate(catalogue, 'from before its copy', COPY_MARGIN))),
  ]);

  await options.settle?.();
  outcomes.push(...(await Promise.allSettled([program?.finish(), ...followers.map((one) => one.finish())])));
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  for (const { mirror } of followers) await mirror.compare(db);
  const { mismatches } = await verifyCounts(db);
  return {
    violations: [
      ...followers.flatMap(({ mirror }) => mirror.violations),
      ...mismatches.map((mismatch) => ({ what: 'counts' as const, where: JSON.stringify(mismatch) })),
    ],
    tally,
    delivered: Object.fromEntries(followers.map(({ mirror }) => [mirror.name, mirror.entries])),
    copies: followers.map(({ copies }) => copies),
  };
}

/**
 * Starts a follower from a full copy, made while others write. It begins at the newest entry, read before the copy, or
 * at the time of the copy less a margin for entries that are not committed yet.
 */
async function startLate(catalogue: ModelCatalogue, name: string, margin: number): Promise<ModelFollower> {
  const { db } = catalogue;
  const { since, copy } = await eventually('a full copy is made', async () => {
    const { rows } = await db.raw<{ rows: [{ newest: string }] }>(
      'select extract(epoch from max(updated_at))::text as newest from titles',
    );
    // With all digits: before a whole second, the feed repeats what a rounded position may have skipped.
    const start = margin === 0 ? Number(rows[0].newest) : Math.floor(Date.now() / 1000) - margin + 0.000001;
    return { since: start, copy: await readCatalogue(db) };
  });
  return startFollower(catalogue, new Mirror(name, toMicros(since), copy), since, { intervalMs: 100 });
}
