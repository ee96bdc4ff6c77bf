import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { Knex } from 'knex';
import { createClient, PositionRefused } from '../../../src/client/client.js';
import { follow } from '../../../src/client/follow.js';
import { retryPolicy } from '../../../src/client/retry.js';
import { startProgram, type RunningProgram } from '../../support/program.js';
import { eventually } from '../../support/eventually.js';
import { openTestDatabase } from '../../support/database.js';
import { requireConsistent, requireEqual } from '../../client/mirror/equality.js';
import { readCatalogue, toMicros, type Mirror } from './mirror.js';

/** A service and a key for it. */
export interface FeedAddress {
  readonly url: string;
  readonly key: string;
}

export interface ModelFollower {
  readonly mirror: Mirror;
  /** How often it had to take a fresh copy. */
  readonly copies: number;
  /** Stops following, then follows once more until nothing is waiting. */
  finish(): Promise<void>;
}

/** How long a follower waits, in milliseconds. */
interface Pace {
  readonly intervalMs: number;
  /** How long the delivery of a page takes. */
  readonly deliverMs?: number;
}

/** Short, to find out soon that a server is back. */
const RETRY = { ...retryPolicy(false), firstMs: 10, longestMs: 200 };

/** Follows in this process, and takes a fresh copy whenever the service demands one, as the guide describes. */
export function startFollower(
  service: FeedAddress & { readonly db: Knex },
  mirror: Mirror,
  start: number,
  { intervalMs, deliverMs }: Pace,
): ModelFollower {
  const stop = new AbortController();
  let since = start;
  let copies = 0;
  const fetchPage = createClient({ baseUrl: service.url, key: service.key });

  async function keep(once: boolean, signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        since = await follow({
          fetchPage,
          since,
          intervalMs,
          async store(page, from) {
            // An empty page may move a position of the client's own back to the newest entry.
            if (page.data.length > 0) mirror.page(page, from);
            if (deliverMs !== undefined) await delay(deliverMs);
            // Pages before a refusal count.
            since = page.meta.next_since;
          },
          retryPolicy: RETRY,
          once,
          signal,
        });
        return;
      } catch (error) {
        if (!(error instanceof PositionRefused)) {
          mirror.report('failed', String(error));
          return;
        }
        await recover(error);
      }
    }
  }

  async function recover({ oldestSince = 0 }: PositionRefused): Promise<void> {
    copies += 1;
    since = oldestSince;
    // The copy is made after its position is known.
    mirror.begin(toMicros(since), await readCatalogue(service.db));
  }

  const following = keep(false, stop.signal);
  return {
    mirror,
    get copies() {
      return copies;
    },
    async finish() {
      stop.abort();
      await following;
      await keep(true, new AbortController().signal);
    },
  };
}

/** `catalog mirror` in a process of its own. */
export interface ProgramMirror {
  /** Kills the process, and starts another one. */
  kill(): Promise<void>;
  /** Requires that the mirror equals the catalogue at its position. */
  check(): Promise<void>;
  /** Stops it, lets it run once more until nothing is waiting, and requires that it equals the catalogue. */
  finish(): Promise<void>;
}

export async function startProgramMirror(
  { url, key, db }: FeedAddress & { readonly db: Knex },
  copiesUrl: string,
): Promise<ProgramMirror> {
  const own = await openTestDatabase();
  const start = (...more: string[]): RunningProgram =>
    startProgram(['mirror', '--from', url, '--copies', copiesUrl, '--interval', '0.1', '--allow-removals', ...more], {
      CATALOG_API_KEY: key,
      MIRROR_DATABASE_URL: own.url,
    });
  let program = start();
  // A feed that was restarted would not suffice to start from.
  await eventually('the mirror follows', () => program.output.stderr.includes('Following'));
  return {
    async kill() {
      program.child.kill('SIGKILL');
      assert.doesNotMatch((await program.ended).stderr, /catalog:/);
      program = start();
    },
    check: async () => void (await requireConsistent(db, own.db)),
    async finish() {
      try {
        program.child.kill('SIGTERM');
        const { code, stderr } = await program.ended;
        // A process that has just started does not handle signals yet.
        assert.ok(code === 0 || stderr === '', stderr);
        const finished = await start('--once').ended;
        assert.equal(finished.code, 0, finished.stderr);
        await requireEqual(db, own.db);
      } finally {
        await own.close();
      }
    },
  };
}
