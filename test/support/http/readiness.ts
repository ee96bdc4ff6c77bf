import assert from 'node:assert/strict';
import type { Dependency } from '../../../src/platform/telemetry/health.js';
import type { ServerProcess } from '../program.js';
import { assertProblem } from '../problem.js';
import { send } from '../request.js';

/** What `/readyz` says about each dependency that is lost. */
const DETAILS: Readonly<Record<Dependency, string>> = {
  database: 'Requests that need the database are answered with 503.',
  replica: 'The read replica is down; reads go to the primary.',
  redis:
    'Redis is down; each process enforces limits on its own, keys are checked against the database, and changes of keys take three seconds.',
  announcements: 'Announcements of changes cannot be read; each request looks its key up in the database.',
};

/** What a server has logged to be lost and back, in order. */
export function stateChanges({ output }: ServerProcess): string[] {
  return [...output.stdout.matchAll(/"msg":"(\w+ (?:lost|back))/g)].map(([, change = '']) => change);
}

/**
 * Holds the whole answer of `/readyz` against what it should be where these of its dependencies are lost.
 *
 * @param own - what is said about a dependency in place of the usual
 */
export async function assertReadiness(
  url: string,
  dependencies: readonly Dependency[],
  lost: readonly Dependency[],
  own: Partial<typeof DETAILS> = {},
): Promise<void> {
  const reply = await send(url, '/readyz');
  const details = { ...DETAILS, ...own };
  const reasons = lost.map((dependency) => ({ code: `${dependency}_lost`, detail: details[dependency] }));
  const checks = Object.fromEntries(
    dependencies.map((dependency) => [dependency, lost.includes(dependency) ? 'lost' : 'up']),
  );
  if (lost.includes('database')) {
    assertProblem(reply, 'service_unavailable', {
      detail: lost.map((dependency) => DETAILS[dependency]).join(' '),
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
