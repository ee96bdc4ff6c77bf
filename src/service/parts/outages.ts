import type { Logger } from 'pino';
import type { Config } from '../../config/settings.js';
import { Health, type Dependency, type Outage } from '../../platform/telemetry/health.js';

export const OUTAGES: Readonly<Record<Dependency, Outage>> = {
  database: {
    name: 'PostgreSQL',
    consequence: 'Requests that need the database are answered with 503.',
    forCallers:
      'Most calls fail with 503 at the moment: wait the number of seconds in Retry-After, then try again. Your keys ' +
      'are not affected, but you cannot sign in or change them until the service has recovered.',
    advice: 'Look for “database lost” in the log, which has the reason. Bring the primary back, or fail over.',
    guide: 'runbook#postgresql-is-down',
    slow: {
      consequence: 'PostgreSQL does not answer in time; requests that need it are answered with 503.',
      advice:
        'If its machine does not answer either, it is down. Otherwise find out what slows it down before you fail over: a ' +
        'failover can lose commits.',
      guide: 'runbook#postgresql-is-slow',
    },
  },
  replica: {
    name: 'Read replica',
    consequence: 'The read replica is down or too slow; reads go to the primary.',
    forCallers: 'All calls work, but may take a little longer.',
    advice: 'Look for “replica lost” in the log, which has the reason. Clients are not affected.',
    guide: 'runbook#the-read-replica-is-down',
  },
  redis: {
    name: 'Redis',
    consequence:
      'Redis is down; each process enforces limits on its own, keys are checked against the database, and changes of ' +
      'keys take three seconds.',
    partly: (nodes) =>
      `Part of Redis is down (cluster nodes ${nodes.join(', ')}); each process enforces limits of the developers ` +
      'there on its own, and their keys are checked against the database.',
    forCallers:
      'All calls work. Until the service has recovered, rate limits may count fewer requests than you send, and ' +
      'changes of keys take a few seconds.',
    advice: 'Check that Redis answers and is neither full nor read-only.',
    guide: 'runbook#redis-is-down',
  },
  announcements: {
    name: 'Announcements of changes',
    consequence: 'Announcements of changes cannot be read; each request looks its key up in the database.',
    forCallers: 'All calls work, but may take a little longer.',
    advice: 'Look for “announcements lost” in the log, which has the reason.',
    guide: 'runbook#servers-cannot-look-for-changes',
  },
};

/** Creates the health of the components that are configured. */
export function createHealth({ redisUrl, databaseReadUrl }: Config, log: Logger): Health {
  return new Health(log, OUTAGES, [
    'database',
    ...(redisUrl === undefined ? [] : (['redis', 'announcements'] as const)),
    ...(databaseReadUrl === undefined ? [] : (['replica'] as const)),
  ]);
}
