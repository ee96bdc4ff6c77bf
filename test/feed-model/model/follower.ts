import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createClient } from '../../../src/follower/client.js';
import { follow, type FollowOptions } from '../../../src/follower/follow.js';
import { DEFAULT_PATIENCE } from '../../../src/follower/retry.js';
import { startProgram, type RunningProgram } from '../../support/program.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { toMicros, type Mirror } from './mirror.js';

/** Where the feed is, and who asks. */
export interface FeedAddress {
  readonly url: string;
  readonly key: string;
}

/** A follower at work. */
export interface ModelFollower {
  readonly mirror: Mirror;
  /** Stops following, then follows once more until nothing is waiting. */
  finish(): Promise<void>;
}

/** How long a follower waits, in milliseconds. */
interface Pace {
  readonly intervalMs: number;
  /** What it takes to deliver a page. */
  readonly deliverMs?: number;
}

/** Short, because nobody waits for this machine to become less busy. */
const PATIENCE = { ...DEFAULT_PATIENCE, firstMs: 10, longestMs: 200 };

/** Bound on following once more in the end, in milliseconds: without a server there is nothing to come. */
const FINISH_MS = 20_000;

/** The follower's own code, in this process. */
export function startFollower(address: FeedAddress, mirror: Mirror, since: number, pace: Pace): ModelFollower {
  const stop = new AbortController();
  const options: Omit<FollowOptions, 'since' | 'once' | 'signal'> = {
    readPage: createClient({ baseUrl: address.url, key: address.key, timeoutMs: 10_000 }),
    intervalMs: pace.intervalMs,
    deliver: async (page, from) => {
      mirror.page(page, from);
      if (pace.deliverMs !== undefined) await delay(pace.deliverMs);
    },
    save: async () => undefined,
    patience: PATIENCE,
  };
  const following = follow({ ...options, since, once: false, signal: stop.signal });
  // Looked at in finish().
  following.catch(() => undefined);
  return {
    mirror,
    async finish() {
      try {
        stop.abort();
        const timeUp = AbortSignal.timeout(FINISH_MS);
        await follow({ ...options, since: await following, once: true, signal: timeUp });
        if (timeUp.aborted) mirror.report('failed', ` not done within ${FINISH_MS / 1000} s`);
      } catch (error) {
        mirror.report('failed', ` ${String(error)}`);
      }
    },
  };
}

/** The program, in a process of its own, that can be killed. */
export interface ProgramFollower extends ModelFollower {
  /** Kills it, and starts it again on what it has saved. */
  kill(): Promise<void>;
}

/** Starts `catalog follow`. */
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
    // The last line may be cut short by a kill; its entry comes again.
    for (const line of stdout.split('\n').slice(0, -1))
      mirror.entry(JSON.parse(line) as Parameters<Mirror['entry']>[0]);
  };
  let program = start();
  return {
    mirror,
    async kill() {
      program.child.kill('SIGKILL');
      apply((await program.ended).stdout);
      mirror.resume(await savedPosition(state, since));
      program = start();
    },
    async finish() {
      program.child.kill('SIGTERM');
      const stopped = await program.ended;
      const last = start('--once');
      const timer = setTimeout(() => last.child.kill('SIGKILL'), FINISH_MS);
      const finished = await last.ended;
      clearTimeout(timer);
      for (const outcome of [stopped, finished]) {
        const { code, stdout, stderr } = outcome;
        apply(stdout);
        // One that was started just now does not listen to signals yet.
        const isUnheard = outcome === stopped && code === null && stdout === '' && stderr === '';
        if (code !== 0 && !isUnheard) mirror.report('failed', `exit code ${String(code)}: ${stderr}`);
      }
    },
  };
}

async function savedPosition(state: string, since: number): Promise<bigint> {
  const text = await readFile(state, 'utf8').catch(() => JSON.stringify({ since }));
  return toMicros((JSON.parse(text) as { since: number }).since);
}
