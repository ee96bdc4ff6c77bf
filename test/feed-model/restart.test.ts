import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { Knex } from 'knex';
import { restartFeed } from '../../src/catalog/restart.js';
import { OperatorError } from '../../src/errors.js';
import { LONG, SEED, withSeed } from '../support/chance.js';
import { pastTriggers } from '../support/postgres/past-triggers.js';
import { eventually } from '../support/eventually.js';
import type { TestService } from '../support/service.js';
import { testWorld } from '../support/world.js';
import { followOnce } from './model/follower.js';
import { Mirror, toMicros, type Violation } from './model/mirror.js';
import { planWriters, SHORT, type PlanSize } from './model/plan.js';
import { runWriter, type Tally } from './model/writer.js';

type Copy = NonNullable<ConstructorParameters<typeof Mirror>[2]>;

const SIZE: PlanSize = { ...SHORT, transactions: SHORT.transactions * LONG };

/** The database loses commits after these shares of all transactions. */
const LOSSES = [0.3, 0.7];

/** How long a mirror waits between two polls, in milliseconds. */
const POLL_MS = 10;

/** The result of a run. */
interface Run {
  readonly violations: readonly Violation[];
  /** How often each mirror had to take a fresh copy. */
  readonly copies: readonly number[];
}

/** Makes titles like those of a restored database: some are missing, others have their first content and stamp. */
async function loseCommits(db: Knex): Promise<void> {
  await pastTriggers(db, 'titles', async (transaction) => {
    await transaction.raw('delete from titles where hashtext(svc_id) % 5 = 0');
    await transaction.raw(
      "update titles set title = 'As at first', updated_at = created_at where hashtext(svc_id) % 5 = 1",
    );
  });
}

/** A mirror as the guide describes it, which takes a fresh copy whenever the service demands one. */
class PersistentMirror {
  readonly violations: Violation[] = [];
  copies = 0;
  #mirror: Mirror;
  #since: number;

  constructor(
    private readonly service: TestService,
    private readonly name: string,
    since: number,
  ) {
    this.#since = since;
    this.#mirror = new Mirror(name, toMicros(since), []);
  }

  /** Follows until nothing is waiting. */
  async visit(): Promise<void> {
    try {
      this.#since = await followOnce(this.service, this.#mirror, this.#since, {
        // Pages before a refusal count.
        store: async (page, from) => {
          if (page.data.length > 0) this.#mirror.page(page, from);
          this.#since = page.meta.next_since;
        },
      });
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error;
      // Between the loss and the restart, positions may be ahead of both the clock and the newest entry.
      if (error.message.includes('400 invalid_since')) return;
      if (!error.message.includes('400 since_out_of_window')) throw error;
      this.copies += 1;
      await this.#begin();
    }
  }

  async finish(): Promise<void> {
    await this.visit();
    await this.visit();
    await this.#mirror.compare(this.service.db);
    this.violations.push(...this.#mirror.violations);
  }

  /** The position must be read before the copy. */
  async #begin(): Promise<void> {
    const { status, json } = await this.service.get(`/api/v1/changes?since=${this.#since}`);
    assert.equal(status, 400);
    this.#since = (json as { oldest_since: number }).oldest_since;
    const copy = await this.service
      .db('titles')
      .select<Copy>('svc_id', 'media_type', 'title', 'updated_at', 'has_bundles');
    this.violations.push(...this.#mirror.violations);
    this.#mirror = new Mirror(this.name, toMicros(this.#since), copy);
  }
}

/** Runs mirrors and writers while the database loses commits. @param restart - called after each loss */
async function run(service: TestService, restart: (db: Knex) => Promise<unknown>): Promise<Run> {
  const { db, databaseUrl } = service;
  const begin = Math.floor(Date.now() / 1000) - 10;
  const tally: Tally = { committed: 0, rolledBack: 0, conflicted: 0, lost: 0 };
  const plans = planWriters(SEED, SIZE);
  const total = plans.reduce((sum, { length }) => sum + length, 0);
  let writing = true;
  const writers = Promise.all(
    plans.map((transactions, index) => runWriter({ name: `w${index}`, databaseUrl, transactions, tally })),
  ).finally(() => (writing = false));
  const losing = (async () => {
    for (const part of LOSSES) {
      await eventually(
        `${part} of all transactions are over`,
        () => tally.committed + tally.rolledBack + tally.conflicted >= part * total,
        20_000 * LONG,
      );
      await loseCommits(db);
      await restart(db);
    }
  })();
  const mirrors = ['a', 'b'].map((name) => new PersistentMirror(service, name, begin));
  const following = mirrors.map(async (mirror) => {
    while (writing) {
      await mirror.visit();
      await delay(POLL_MS);
    }
  });
  for (const outcome of await Promise.allSettled([writers, losing, ...following])) {
    if (outcome.status === 'rejected') throw outcome.reason;
  }
  for (const mirror of mirrors) await mirror.finish();
  return { violations: mirrors.flatMap(({ violations }) => violations), copies: mirrors.map(({ copies }) => copies) };
}

describe('mirrors of a database that loses commits repeatedly', function () {
  this.timeout(60_000 * LONG);
  const world = testWorld({ service: true, each: true });

  it(withSeed('are refused after each restart of the feed and end up with exactly the catalogue'), async () => {
    const { violations, copies } = await run(world.service, restartFeed);
    assert.deepEqual(violations, []);
    for (const times of copies) assert.ok(times >= 1 && times <= LOSSES.length, String(copies));
  });

  it(withSeed('keep entries that the database has lost if the feed is not restarted'), async () => {
    const { violations, copies } = await run(world.service, async () => undefined);
    assert.deepEqual(copies, [0, 0]);
    assert.ok(violations.some(({ what }) => what === 'foreign'));
  });
});
