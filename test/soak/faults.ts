import { setTimeout as delay } from 'node:timers/promises';
import type { FollowerProcess } from './traffic/mirrors.js';
import type { Deployment } from './deployment.js';
import type { Failure, History } from './history.js';

/** What faults are done to. */
export interface Stage {
  readonly deployment: Deployment;
  readonly followers: readonly FollowerProcess[];
}

/** Something that goes wrong. */
interface Fault {
  readonly name: string;
  /** The failures of requests that clients may see. */
  readonly allows: readonly Failure[];
  /** The time after `mend` within which all must be well, in milliseconds. */
  readonly boundMs: number;
  readonly needs?: 'balancer';
  readonly forgetsCounts?: true;
  readonly strike: (stage: Stage) => unknown;
  /** Removes the cause some seconds later. Without it, nothing is done. */
  readonly mend?: (stage: Stage) => unknown;
}

/**
 * Bounds. The guides promise half a second for Redis and 5 s for notifications; a start takes a second or more. The rest is a
 * margin for a busy machine.
 */
const REDIS_MS = 5_000;
const POSTGRES_MS = 8_000;
const SERVER_MS = 10_000;
const CLIENTS_MS = 3_000;

/** Nothing listens there. */
const NOWHERE = 'tcp://127.0.0.1:9';

/** Latencies in milliseconds: a Redis that counts as lost, and a database that is slow but in time. */
const SLOW_REDIS_MS = 400;
const SLOW_POSTGRES_MS = 80;

let endSwallowed: () => void;

/** Every fault. Their order in a run comes from its seed. */
export const FAULTS: readonly Fault[] = [
  {
    name: 'a server is killed',
    allows: ['unavailable', 'broken'],
    boundMs: SERVER_MS,
    strike: ({ deployment }) => deployment.replaceServer(deployment.victim, 'SIGKILL'),
  },
  {
    name: 'a server is frozen',
    allows: ['unavailable', 'broken'],
    boundMs: SERVER_MS,
    strike: ({ deployment }) => deployment.victim.process.child.kill('SIGSTOP'),
    mend: ({ deployment }) => deployment.victim.process.child.kill('SIGCONT'),
  },
  {
    name: 'Redis is killed',
    allows: [],
    boundMs: REDIS_MS,
    strike: ({ deployment }) => deployment.redis.kill(),
    mend: ({ deployment }) => deployment.redis.restart(),
  },
  {
    name: 'Redis is frozen',
    allows: [],
    boundMs: REDIS_MS,
    strike: ({ deployment }) => deployment.redis.pause(),
    mend: ({ deployment }) => deployment.redis.resume(),
  },
  {
    name: 'Redis loses its data',
    allows: [],
    boundMs: REDIS_MS,
    forgetsCounts: true,
    strike: ({ deployment }) => deployment.redis.restart({ empty: true }),
  },
  {
    name: 'the network to Redis is slow',
    allows: [],
    boundMs: REDIS_MS,
    strike: ({ deployment }) => (deployment.toRedis.delayMs = SLOW_REDIS_MS),
    mend: ({ deployment }) => (deployment.toRedis.delayMs = 0),
  },
  {
    name: 'the network to PostgreSQL is cut',
    allows: ['unavailable'],
    boundMs: POSTGRES_MS,
    strike({ deployment: { toPostgres } }) {
      toPostgres.leadTo(NOWHERE);
      toPostgres.cut();
    },
    mend: ({ deployment }) => deployment.toPostgres.leadTo(deployment.postgres.url),
  },
  {
    name: 'the network to PostgreSQL drops all connections silently',
    allows: ['unavailable'],
    boundMs: POSTGRES_MS,
    strike: ({ deployment }) => (endSwallowed = deployment.toPostgres.swallow()),
    // PostgreSQL keeps the sessions until its keep-alive finds out.
    mend: () => endSwallowed(),
  },
  {
    name: 'PostgreSQL is slow',
    allows: ['unavailable'],
    boundMs: POSTGRES_MS,
    strike: ({ deployment }) => (deployment.toPostgres.delayMs = SLOW_POSTGRES_MS),
    mend: ({ deployment }) => (deployment.toPostgres.delayMs = 0),
  },
  {
    name: 'PostgreSQL is restarted',
    allows: ['unavailable'],
    boundMs: POSTGRES_MS,
    async strike({ deployment: { postgres } }) {
      await postgres.stop('fast');
      await postgres.restart();
    },
  },
  {
    name: 'PostgreSQL is killed',
    allows: ['unavailable'],
    boundMs: POSTGRES_MS,
    strike: ({ deployment }) => deployment.postgres.kill(),
    mend: ({ deployment }) => deployment.postgres.restart(),
  },
  {
    name: 'PostgreSQL is frozen',
    allows: ['unavailable'],
    boundMs: POSTGRES_MS,
    strike: ({ deployment }) => deployment.postgres.pause(),
    mend: ({ deployment }) => deployment.postgres.resume(),
  },
  {
    name: 'the followers are killed',
    allows: [],
    boundMs: CLIENTS_MS,
    strike: ({ followers }) => Promise.all(followers.map((follower) => follower.restart())),
  },
  {
    name: 'HAProxy is reloaded',
    allows: ['broken'],
    boundMs: CLIENTS_MS,
    needs: 'balancer',
    strike: ({ deployment }) => deployment.balancer?.reload(),
  },
  {
    name: 'a server is replaced',
    allows: [],
    boundMs: SERVER_MS,
    needs: 'balancer',
    strike: ({ deployment }) => deployment.replaceServer(deployment.victim, 'SIGTERM'),
  },
];

/** Does a fault, and records it. @param lastsMs - until its cause is removed */
export async function doFault(fault: Fault, stage: Stage, history: History, lastsMs: number): Promise<void> {
  const { name, allows, boundMs, forgetsCounts = false } = fault;
  const start = history.now();
  try {
    await fault.strike(stage);
    if (fault.mend) await delay(lastsMs);
  } finally {
    await fault.mend?.(stage);
    history.record({ kind: 'fault', name, allows, boundMs, forgetsCounts, start, end: history.now() });
  }
}
