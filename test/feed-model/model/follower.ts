import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Knex } from 'knex';
import { createClient, PositionRefused } from '../../../src/follower/client.js';
import { follow, type FollowOptions } from '../../../src/follower/follow.js';
import { retryPolicy } from '../../../src/follower/retry.js';
import { startProgram, type RunningProgram } from '../../support/program.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
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

function optionsFor({ url, key }: FeedAddress, mirror: Mirror, since: number, { intervalMs, deliverMs }: Pace) {
  return {
    readPage: createClient({ baseUrl: url, key }),
    since,
    intervalMs,
    store: async (page, from) => {
      // An empty page may move a position of the client's own back to the newest entry.
      if (page.data.length > 0) mirror.page(page, from);
      if (deliverMs !== undefined) await delay(deliverMs);
    },
    retryPolicy: RETRY,
    signal: new AbortController().signal,
  } satisfies Partial<FollowOptions>;
}

/** Follows until nothing is waiting. @returns the new position @throws OperatorError when the service refuses the position */
export function followOnce(address: FeedAddress, mirror: Mirror, since: number): Promise<number> {
  return follow({ ...optionsFor(address, mirror, since, { intervalMs: 0 }), once: true });
}

/** Follows in this process, and takes a fresh copy whenever the service demands one, as the guide describes. */
export function startFollower(
  service: FeedAddress & { readonly db: Knex },
  mirror: Mirror,
  start: number,
  pace: Pace,
): ModelFollower {
  const stop = new AbortController();
  let since = start;
  let copies = 0;
  const options = optionsFor(service, mirror, since, pace);

  async function keep(more: Pick<FollowOptions, 'once'> & Partial<FollowOptions>): Promise<void> {
    for (;;) {
      try {
        since = await follow({
          ...options,
          since,
          async store(page, from) {
            await options.store(page, from);
            // Pages before a refusal count.
            since = page.meta.next_since;
          },
          ...more,
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

  async function recover({ code, oldestSince = 0 }: PositionRefused): Promise<void> {
    if (code === 'invalid_since') {
      // Between a loss and the restart of the feed, positions may be ahead of both the clock and the newest entry.
      await delay(RETRY.firstMs);
      return;
    }
    copies += 1;
    since = oldestSince;
    // The copy is made after its position is known.
    mirror.begin(toMicros(since), await readCatalogue(service.db));
  }

  const following = keep({ once: false, signal: stop.signal });
  return {
    mirror,
    get copies() {
      return copies;
    },
    async finish() {
      stop.abort();
      await following;
      await keep({ once: true });
    },
  };
}

/** `catalog follow` in a process of its own. */
export interface ProgramFollower extends ModelFollower {
  /** Kills the process, and starts another one with the same state file. */
  kill(): Promise<void>;
}

export async function startProgramFollower(
  address: FeedAddress,
  mirror: Mirror,
  since: number,
): Promise<ProgramFollower> {
  const state = join(await temporaryFolder(), 'state.json');
  const start = (...more: string[]): RunningProgram =>
    startProgram(
      ['follow', '--base-url', address.url, '--state', state, '--since', String(since), '--interval', '0.1', ...more],
      { CATALOG_API_KEY: address.key },
    );
  const apply = (stdout: string): void => {
    // A kill may have cut the last line short; its entry comes again.
    for (const line of stdout.split('\n').slice(0, -1))
      mirror.entry(JSON.parse(line) as Parameters<Mirror['entry']>[0]);
  };
  let program = start();
  return {
    mirror,
    copies: 0,
    async kill() {
      program.child.kill('SIGKILL');
      apply((await program.ended).stdout);
      mirror.resume(await savedPosition(state, since));
      program = start();
    },
    async finish() {
      program.child.kill('SIGTERM');
      const stopped = await program.ended;
      const finished = await start('--once').ended;
      for (const outcome of [stopped, finished]) {
        const { code, stdout, stderr } = outcome;
        apply(stdout);
        // A process that has just started does not handle signals yet.
        const isTooEarly = outcome === stopped && code === null && stdout === '' && stderr === '';
        if (code !== 0 && !isTooEarly) mirror.report('failed', `exit code ${String(code)}: ${stderr}`);
      }
    },
  };
}

async function savedPosition(state: string, since: number): Promise<bigint> {
  const text = await readFile(state, 'utf8').catch(() => JSON.stringify({ since }));
  return toMicros((JSON.parse(text) as { since: number }).since);
}
