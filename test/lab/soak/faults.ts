import { setTimeout as delay } from 'node:timers/promises';
import type { Deployment } from './deployment.js';
import type { Failure, History } from './history.js';

/** Something that goes wrong. */
interface Fault {
  readonly name: string;
  readonly strike: (deployment: Deployment) => unknown;
  /** Removes the cause some seconds later. Without it, nothing is done. */
  readonly mend?: (deployment: Deployment) => unknown;
  /** The failures of requests that clients may see; by default none. */
  readonly allows?: readonly Failure[];
  /** The time after `mend` within which all must be well, in milliseconds. */
  readonly boundMs: number;
}

/** Bounds. The guides promise half a second for Redis and 5 s for notifications; a start takes a second or more. */
const OF_REDIS = { boundMs: 5_000 };
const OF_POSTGRES = { boundMs: 8_000, allows: ['unavailable'] } as const;
const OF_A_SERVER = { boundMs: 10_000, allows: ['unavailable', 'broken'] } as const;
const OF_THE_BALANCER = { boundMs: 3_000, allows: ['broken'] } as const;

/** Nothing listens there. */
const NOWHERE = 'tcp://127.0.0.1:9';

/** Latencies in milliseconds: a Redis that counts as lost, and a database that is slow but in time. */
const SLOW_REDIS_MS = 400;
const SLOW_POSTGRES_MS = 80;

let endSwallowed: () => void;

/** The faults that a store of its own can have. */
function killAndFreeze(name: string, part: 'redis' | 'postgres', bounds: Pick<Fault, 'boundMs' | 'allows'>): Fault[] {
  return [
    {
      name: `${name} is killed`,
      ...bounds,
      strike: (deployment) => deployment[part].kill(),
      mend: (deployment) => deployment[part].restart(),
    },
    {
      name: `${name} is frozen`,
      ...bounds,
      strike: (deployment) => deployment[part].pause(),
      mend: (deployment) => deployment[part].resume(),
    },
  ];
}

/** Every fault. Their order in a run comes from its seed. */
export const FAULTS: readonly Fault[] = [
  {
    name: 'a server is killed',
    ...OF_A_SERVER,
    strike: (deployment) => deployment.replaceServer('SIGKILL'),
  },
  {
    name: 'a server is frozen',
    ...OF_A_SERVER,
    strike: (deployment) => deployment.servers.get('two')?.child.kill('SIGSTOP'),
    mend: (deployment) => deployment.servers.get('two')?.child.kill('SIGCONT'),
  },
  {
    name: 'a server is replaced',
    ...OF_A_SERVER,
    allows: [],
    strike: (deployment) => deployment.replaceServer('SIGTERM'),
  },
  ...killAndFreeze('Redis', 'redis', OF_REDIS),
  {
    name: 'Redis loses its data',
    ...OF_REDIS,
    strike: (deployment) => deployment.redis.restart({ empty: true }),
  },
  {
    name: 'the network to Redis is slow',
    ...OF_REDIS,
    strike: (deployment) => (deployment.toRedis.delayMs = SLOW_REDIS_MS),
    mend: (deployment) => (deployment.toRedis.delayMs = 0),
  },
  {
    name: 'the network to PostgreSQL is cut',
    ...OF_POSTGRES,
    strike({ toPostgres }) {
      toPostgres.leadTo(NOWHERE);
      toPostgres.cut();
    },
    mend: (deployment) => deployment.toPostgres.leadTo(deployment.postgres.url),
  },
  {
    name: 'the network to PostgreSQL drops all connections silently',
    ...OF_POSTGRES,
    strike: (deployment) => (endSwallowed = deployment.toPostgres.swallow()),
    // PostgreSQL keeps the sessions until its keep-alive finds out.
    mend: () => endSwallowed(),
  },
  {
    name: 'PostgreSQL is slow',
    ...OF_POSTGRES,
    strike: (deployment) => (deployment.toPostgres.delayMs = SLOW_POSTGRES_MS),
    mend: (deployment) => (deployment.toPostgres.delayMs = 0),
  },
  {
    name: 'PostgreSQL is restarted',
    ...OF_POSTGRES,
    async strike({ postgres }) {
      await postgres.stop('fast');
      await postgres.restart();
    },
  },
  ...killAndFreeze('PostgreSQL', 'postgres', OF_POSTGRES),
  {
    name: 'HAProxy is reloaded',
    ...OF_THE_BALANCER,
    strike: (deployment) => deployment.reloadBalancer(),
  },
];

/** Does a fault, and records it. @param lastsMs - until its cause is removed */
export async function doFault(fault: Fault, deployment: Deployment, history: History, lastsMs: number): Promise<void> {
  const { name, allows = [], boundMs } = fault;
  const start = history.now();
  try {
    await fault.strike(deployment);
    if (fault.mend) await delay(lastsMs);
  } finally {
    await fault.mend?.(deployment);
    history.record({ kind: 'fault', name, allows, boundMs, start, end: history.now() });
  }
}
