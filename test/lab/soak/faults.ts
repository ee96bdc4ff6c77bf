import { setTimeout as delay } from 'node:timers/promises';
import type { Deployment } from './deployment.js';
import type { Failure, History } from './history.js';

type Act = (deployment: Deployment) => unknown;

/** Something that goes wrong. */
interface Fault {
  readonly name: string;
  /** The failures of requests that clients may see. */
  readonly allows: readonly Failure[];
  /** The time after `mend` within which all must be well, in milliseconds. */
  readonly boundMs: number;
  readonly strike: Act;
  /** Removes the cause some seconds later. Without it, nothing is done. */
  readonly mend: Act | undefined;
}

/** Bounds. The guides promise half a second for Redis and 5 s for notifications; a start takes a second or more. */
const OF_REDIS = { boundMs: 5_000, allows: [] } as const;
const OF_POSTGRES = { boundMs: 8_000, allows: ['unavailable'] } as const;
const OF_A_SERVER = { boundMs: 10_000, allows: ['unavailable', 'broken'] } as const;
const OF_THE_BALANCER = { boundMs: 3_000, allows: ['broken'] } as const;

/** Nothing listens there. */
const NOWHERE = 'tcp://127.0.0.1:9';

/** Latencies in milliseconds: a Redis that counts as lost, and a database that is slow but in time. */
const SLOW_REDIS_MS = 400;
const SLOW_POSTGRES_MS = 80;

function fault(name: string, bounds: Pick<Fault, 'boundMs' | 'allows'>, strike: Act, mend?: Act): Fault {
  return { name, ...bounds, strike, mend };
}

/** The faults that a store of its own can have. */
function faultsOf(name: string, part: 'redis' | 'postgres', bounds: Pick<Fault, 'boundMs' | 'allows'>): Fault[] {
  const act =
    (what: 'kill' | 'restart' | 'pause' | 'resume'): Act =>
    ({ world }) =>
      world[part][what]();
  return [
    fault(`${name} is killed`, bounds, act('kill'), act('restart')),
    fault(`${name} is frozen`, bounds, act('pause'), act('resume')),
    fault(`${name} is restarted`, bounds, act('restart')),
  ];
}

const slow =
  (network: 'toRedis' | 'toPostgres', delayMs: number): Act =>
  (deployment) =>
    (deployment[network].delayMs = delayMs);

const signal =
  (name: NodeJS.Signals): Act =>
  ({ servers }) =>
    servers.get('two')?.child.kill(name);

let endSwallowed: () => void;

/** Every fault. Their order in a run comes from its seed. */
export const FAULTS: readonly Fault[] = [
  fault('a server is killed', OF_A_SERVER, (deployment) => deployment.replaceServer('SIGKILL')),
  fault('a server is frozen', OF_A_SERVER, signal('SIGSTOP'), signal('SIGCONT')),
  fault('a server is replaced', { ...OF_A_SERVER, allows: [] }, (deployment) => deployment.replaceServer('SIGTERM')),
  ...faultsOf('Redis', 'redis', OF_REDIS),
  fault('Redis loses its data', OF_REDIS, ({ world }) => world.redis.restart({ empty: true })),
  fault('the network to Redis is slow', OF_REDIS, slow('toRedis', SLOW_REDIS_MS), slow('toRedis', 0)),
  ...faultsOf('PostgreSQL', 'postgres', OF_POSTGRES),
  fault('PostgreSQL is slow', OF_POSTGRES, slow('toPostgres', SLOW_POSTGRES_MS), slow('toPostgres', 0)),
  fault(
    'the network to PostgreSQL is cut',
    OF_POSTGRES,
    ({ toPostgres }) => {
      toPostgres.leadTo(NOWHERE);
      toPostgres.cut();
    },
    ({ toPostgres, world }) => toPostgres.leadTo(world.url),
  ),
  fault(
    'the network to PostgreSQL drops all connections silently',
    OF_POSTGRES,
    ({ toPostgres }) => (endSwallowed = toPostgres.swallow()),
    // PostgreSQL keeps the sessions until its keep-alive finds out.
    () => endSwallowed(),
  ),
  fault('HAProxy is reloaded', OF_THE_BALANCER, (deployment) => deployment.reloadBalancer()),
];

/** Does a fault, and records it and whether all is well again in time. @param lastsMs - until its cause is removed */
export async function doFault(fault: Fault, deployment: Deployment, history: History, lastsMs: number): Promise<void> {
  const { name, allows, boundMs } = fault;
  const start = history.now();
  try {
    await fault.strike(deployment);
    if (fault.mend) await delay(lastsMs);
  } finally {
    await fault.mend?.(deployment);
    const end = history.now();
    const isHealed = await deployment.heals(boundMs);
    history.events.push({ kind: 'fault', name, allows, boundMs, isHealed, start, end });
  }
}
