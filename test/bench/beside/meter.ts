import { setTimeout as delay } from 'node:timers/promises';
import type { Knex } from 'knex';
import { openDatabase } from '../../../src/platform/postgres/database.js';
import { preciseCpuSeconds } from '../load/process-figures.js';
import type { Result } from '../measure.js';

/** Rows of a step, as a server begins with. */
export const STEP = 1_000;

/** The longest that a statement of a job should take, in milliseconds of CPU time: an eighth of its bound. */
const MOST_MS = 100;

/** Costs of PostgreSQL. Times are CPU time in milliseconds. */
export interface Cost {
  readonly ms: number;
  readonly longestMs: number;
  readonly walBytes: number;
}

type Measure = (act: () => Promise<unknown>) => Promise<Cost>;

/** Opens one connection, which stays the same to the end. */
export function openOne(address: string): Knex {
  return openDatabase({
    ...{ address, applicationName: 'bench', poolSize: 1, maxAgeSeconds: 86_400 },
    ...{ acquireTimeoutMs: 600_000, statementTimeoutMs: 0 },
  });
}

/** Makes a function that measures what PostgreSQL does for the one connection of a pool. */
export function meter(db: Knex): Measure {
  const read = async (): Promise<{ pid: number; wal: number }> => {
    const { rows } = await db.raw<{ rows: [{ pid: number; wal: string }] }>(
      "select pg_backend_pid() as pid, pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') as wal",
    );
    return { pid: rows[0].pid, wal: Number(rows[0].wal) };
  };
  return async (act) => {
    const { pid, wal } = await read();
    const begin = preciseCpuSeconds(pid);
    let [before, longest] = [begin, 0];
    const note = (): void => {
      const now = preciseCpuSeconds(pid);
      longest = Math.max(longest, now - before);
      before = now;
    };
    db.on('query-response', note);
    await act();
    // The process accounts for its last moments when it goes to sleep.
    await delay(20);
    note();
    db.off('query-response', note);
    return { ms: (before - begin) * 1_000, longestMs: longest * 1_000, walBytes: (await read()).wal - wal };
  };
}

/** Repeats a step of a job while there is more. */
export async function untilDone(step: () => Promise<boolean>): Promise<void> {
  while (await step());
}

/** A line of what something costs as a whole. @param most - of a statement, in milliseconds */
export function totalLine(what: string, { ms, longestMs, walBytes }: Cost, most = MOST_MS): Result {
  return {
    what,
    figures: [`${ms.toFixed(ms < 10 ? 1 : 0)} ms`, `${longestMs.toFixed(0)} ms`, `${(walBytes / 1e6).toFixed(1)} MB`],
    goal: { text: `${most} ms`, isMet: longestMs < most },
  };
}

/** A line of what each of many units costs. Its goals are microseconds, and bytes of the log of changes. */
export function unitLine(
  what: string,
  costs: readonly Cost[],
  units: number,
  mostMicros: number,
  most = Infinity,
): Result {
  const sum = (of: keyof Cost): number => costs.reduce((added, cost) => added + cost[of], 0);
  const [micros, bytes] = [(sum('ms') * 1_000) / units, sum('walBytes') / units];
  const longest = Math.max(...costs.map(({ longestMs }) => longestMs));
  return {
    what,
    figures: [`${micros.toFixed(1)} µs`, `${longest.toFixed(0)} ms`, `${bytes.toFixed(0)} B`],
    goal: {
      text: `${mostMicros} µs${most < Infinity ? `, ${most} B` : ''}, ${MOST_MS} ms`,
      isMet: micros <= mostMicros && bytes <= most && longest < MOST_MS,
    },
  };
}
