import assert from 'node:assert/strict';
import type { Dependency } from '../../../src/platform/telemetry/health.js';
import type { ServerProcess } from '../program.js';
import { assertProblem } from '../problem.js';
import { send } from '../request.js';

/** What `/readyz` says about each dependency that is lost. */
const DETAILS: Readonly<Record<Dependency, string>> = {
  database: 'Requests that need the database are answered with 503.',
  replica: 'The read replica is down or too slow; reads go to the primary.',
  redis:
    'Redis is down; each process enforces limits on its own, keys are checked against the database, and changes of keys take three seconds.',
  announcements: 'Announcements of changes cannot be read; each request looks its key up in the database.',
};

/** The detail for a database that is reachable but does not answer in time. */
const SLOW = 'PostgreSQL does not answer in time; requests that need it are answered with 503.';

/** What was logged to be lost and back, in order. A dependency that becomes slow counts as lost, once. */
export function stateChangesIn(log: string): string[] {
  const last = new Map<string, string>();
  return [...log.matchAll(/"msg":"(\w+) (lost|slow|back)/g)].flatMap(([, name = '', logged = '']) => {
    const state = logged === 'slow' ? 'lost' : logged;
    if (last.get(name) === state) return [];
    last.set(name, state);
    return [`${name} ${state}`];
  });
}

/** @returns what a server has logged: see {@link stateChangesIn} */
export function stateChanges({ output }: ServerProcess): string[] {
  return stateChangesIn(output.stdout);
}

/**
 * Holds the whole answer of `/readyz` against what it should be where these of its dependencies are lost.
 *
 * @param own - what is said about a dependency in place of the usual
 * @param databaseState - of a database that is lost; by default any
 */
export async function assertReadiness(
  url: string,
  dependencies: readonly Dependency[],
  lost: readonly Dependency[],
  own: Partial<typeof DETAILS> = {},
  databaseState?: 'lost' | 'slow',
): Promise<void> {
  const reply = await send(url, '/readyz');
  const isSlow = (databaseState ?? (reply.json as { checks?: { database?: string } }).checks?.database) === 'slow';
  const details = { ...DETAILS, ...(isSlow && { database: SLOW }), ...own };
  const stateOf = (dependency: Dependency): string => (isSlow && dependency === 'database' ? 'slow' : 'lost');
  const reasons = lost.map((dependency) => ({
    code: `${dependency}_${stateOf(dependency)}`,
    detail: details[dependency],
  }));
  const checks = Object.fromEntries(
    dependencies.map((dependency) => [dependency, lost.includes(dependency) ? stateOf(dependency) : 'up']),
  );
  if (lost.includes('database')) {
    assertProblem(reply, 'service_unavailable', {
      detail: lost.map((dependency) => details[dependency]).join(' '),
      members: { reasons, checks },
      headers: { 'retry-after': '2' },
    });
    return;
  }
  assert.deepEqual(
    { status: reply.status, type: reply.headers['content-type'], json: reply.json },
    {
      status: 200,
      type: 'application/json',
      json: lost.length === 0 ? { status: 'ready', checks } : { status: 'degraded', reasons, checks },
    },
  );
}
