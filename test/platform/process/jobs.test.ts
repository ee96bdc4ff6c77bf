import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import type { Knex } from 'knex';
import { DatabaseTimeout } from '../../../src/platform/postgres/errors.js';
import { Jobs, type Job } from '../../../src/platform/process/jobs.js';
import { createLog } from '../../../src/platform/telemetry/log.js';
import { connectTo } from '../../support/database.js';
import { eventually, GIVE_UP_MS } from '../../support/eventually.js';
import { testWorld } from '../../support/world.js';

const MINUTE_MS = 60_000;

/** A minute takes a tenth of a second. */
const SPEED = 600;

describe('the jobs beside the requests', () => {
  const world = testWorld();

  /** Starts jobs as a server does, on one connection. */
  function serve(...started: Job[]): { readonly jobs: Jobs; readonly logged: unknown[]; readonly db: Knex } {
    const logged: unknown[] = [];
    const log = createLog('info', {
      write(line) {
        const { msg, job } = JSON.parse(line) as { msg: string; job?: string };
        logged.push(job === undefined ? msg : [job, msg]);
      },
    });
    const db = connectTo(world.url, { poolSize: 1 });
    world.defer(() => db.destroy());
    const jobs = new Jobs(db, log, SPEED);
    for (const job of started) jobs.start(job);
    world.defer(() => jobs.stop(GIVE_UP_MS));
    return { jobs, logged, db };
  }

  it('a job that fails is logged once and again when it works, is counted, and holds up no other', async () => {
    let fails = true;
    let others = 0;
    const { jobs, logged } = serve(
      {
        name: 'failing',
        intervalMs: 5 * MINUTE_MS,
        step: () => (fails ? Promise.reject(new Error('a reason')) : Promise.resolve(false)),
      },
      { name: 'other', intervalMs: MINUTE_MS, step: () => Promise.resolve(false).finally(() => (others += 1)) },
    );
    const state = () => jobs.states.get('failing') ?? assert.fail();
    const begin = state().succeededAt;
    await eventually('several rounds have failed', () => state().failures > 3);
    assert.ok(others > 0);
    assert.deepEqual([typeof state().failingSince, state().succeededAt], ['number', begin]);
    assert.equal(jobs.states.get('other')?.failures, 0);
    assert.ok((jobs.states.get('other')?.succeededAt ?? 0) > begin);
    fails = false;
    await eventually('it works', () => state().failingSince === undefined);
    assert.ok(state().succeededAt > begin);
    assert.deepEqual(logged, [
      ['failing', 'job "failing" failed; trying again until it succeeds'],
      ['failing', 'job "failing" works again'],
    ]);
  });

  it('a step that exceeds its bound takes half as many rows next time, and other failures change nothing', async () => {
    const sizes: number[] = [];
    const errors = [
      new DatabaseTimeout('late'),
      new Error('other'),
      'canceled by PostgreSQL',
      ...Array.from({ length: 8 }, () => new DatabaseTimeout('late')),
    ];
    serve({
      name: 'slow',
      intervalMs: MINUTE_MS,
      async step(db, rows) {
        sizes.push(rows);
        const error = errors.shift();
        if (typeof error === 'string') await db.raw('set local statement_timeout to 1; select pg_sleep(60)');
        else if (error !== undefined) throw error;
        return false;
      },
    });
    await eventually('it succeeds again', () => sizes.length > 13);
    assert.deepEqual(sizes.slice(0, 14), [1_000, 500, 500, 250, 125, 62, 50, 50, 50, 50, 50, 50, 150, 250]);
  });

  it('a round ends when a step leaves nothing, or when the server stops', async () => {
    let left = 7;
    let endless = 0;
    const { jobs } = serve(
      { name: 'bounded', intervalMs: MINUTE_MS, step: () => Promise.resolve((left -= 1) > 0) },
      {
        name: 'endless',
        intervalMs: MINUTE_MS,
        async step() {
          endless += 1;
          await setImmediate();
          return true;
        },
      },
    );
    await eventually('both have begun', () => left <= 0 && endless > 0);
    await jobs.stop(GIVE_UP_MS);
    const after = endless;
    await setImmediate();
    assert.equal(endless, after);
  });

  it('a server that stops waits for the step in progress, and runs the last round of the jobs that have one', async () => {
    const steps: string[] = [];
    let release = (): void => undefined;
    let waiting = 3;
    const { jobs } = serve(
      {
        name: 'last',
        intervalMs: 1e9,
        isLast: true,
        async step(_db, _rows, stopping) {
          steps.push(`last ${stopping.aborted}`);
          return (waiting -= 1) > 0;
        },
      },
      {
        name: 'other',
        intervalMs: MINUTE_MS,
        async step() {
          steps.push('other');
          await new Promise<void>((resolve) => (release = resolve));
          steps.push('done');
          return true;
        },
      },
    );
    await eventually('it has begun', () => steps.includes('other'));
    const stopping = jobs.stop(GIVE_UP_MS);
    release();
    await stopping;
    assert.deepEqual(steps.filter((step) => step.startsWith('last')).slice(-1), ['last true']);
    assert.ok(waiting <= 0 && steps.includes('done'), steps.join());
    assert.equal(steps.filter((step) => step === 'other').length, 1);
  });

  it('a stop ends within its bound, whatever a job waits for', async () => {
    let release: ((isMore: boolean) => void) | undefined;
    const { jobs } = serve({
      name: 'hanging',
      intervalMs: MINUTE_MS,
      step: () => new Promise((resolve) => (release = resolve)),
    });
    await eventually('it has begun', () => release !== undefined);
    await assert.rejects(jobs.stop(50), /no reply within 50 ms/);
    release?.(false);
  });

  it('a job for all servers is done by one at a time, step by step, and left out where another has done it lately', async () => {
    let working = 0;
    let most = 0;
    let done = 0;
    const servers = Array.from({ length: 4 }, () => {
      let left = 5;
      return serve({
        name: 'shared',
        intervalMs: 1e12,
        isShared: true,
        async step(db) {
          most = Math.max(most, (working += 1));
          await db.raw('select pg_sleep(0.005)');
          working -= 1;
          left -= 1;
          if (left === 0) done += 1;
          return left > 0;
        },
      });
    });
    const begun = servers.map(({ jobs }) => jobs.states.get('shared')?.succeededAt);
    const seen = (): unknown[] => servers.map(({ jobs }) => jobs.states.get('shared')?.succeededAt);
    await eventually('each server has seen it done', () => seen().every((at, i) => at !== begun[i]));
    assert.deepEqual([most, done], [1, 1]);
    for (const { logged } of servers) assert.deepEqual(logged, []);
  });

  it('a job for all servers is done by another one when the first fails or ends', async () => {
    let done = 0;
    const job = { name: 'taken over', intervalMs: 10 * MINUTE_MS, isShared: true } as const;
    const { jobs: failing } = serve({ ...job, step: () => Promise.reject(new Error('no')) });
    await eventually('it fails', () => (failing.states.get(job.name)?.failures ?? 0) > 2);
    serve({ ...job, step: () => Promise.resolve(false).finally(() => (done += 1)) });
    await eventually('the other one does it', () => done > 0);
    await eventually('the first one has seen that', () => failing.states.get(job.name)?.failingSince === undefined);
  });
});
