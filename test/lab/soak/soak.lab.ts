import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SEED } from '../../support/catalog/chance.js';
import { ROOT } from '../../support/guides.js';
import { skipWithout } from '../../support/programs/skip.js';
import { findProgram, HAPROXY } from '../../support/programs/system-program.js';
import { flatCheck } from './checks/flat.js';
import { healingCheck, tellFaults } from './checks/healing.js';
import { keysCheck } from './checks/keys.js';
import { Deployment } from './deployment.js';
import { FAULTS } from './faults.js';
import { History } from './history.js';
import { disturb, withTraffic } from './soak.js';

const CHECKS = [keysCheck, healingCheck, flatCheck];

const FOLDER = fileURLToPath(new URL('.cache/soak', ROOT));

/** The length of the run in minutes, and calls a second. SEED decides the order of the faults. */
const MINUTES = Number(process.env.MINUTES ?? 5);
const RATE = Number(process.env.RATE ?? 60);

/** The longest time from one fault to the next, in seconds. A short run does every fault once as well. */
const FAULT_SECONDS = 120;

describe(`a soak of ${MINUTES} minutes`, function () {
  this.timeout(0);

  it('every promise is kept while servers run under load and one fault follows the other', async function () {
    const balancer = findProgram(HAPROXY) ?? skipWithout('HAProxy', this);
    const seconds = MINUTES * 60;
    const history = new History();
    const deployment = await Deployment.start(history, balancer);
    try {
      await withTraffic(deployment, history, RATE, async () => {
        history.note({ kind: 'begin', at: new Date().toISOString(), seed: SEED });
        await disturb(deployment, history, {
          seconds,
          faultSeconds: Math.min(FAULT_SECONDS, seconds / FAULTS.length),
          seed: SEED,
        });
      });
    } finally {
      await deployment.stop();
      await mkdir(FOLDER, { recursive: true });
      await history.save(join(FOLDER, 'history.ndjson'));
    }
    const broken: string[] = [];
    console.log(`      seed ${SEED}; all that happened is in .cache/soak/history.ndjson`);
    for (const line of tellFaults(history.events)) console.log(`      ${line}`);
    for (const { promise, judge } of CHECKS) {
      const { judged, violations } = judge(history.events);
      console.log(`      ${violations.length === 0 ? 'kept' : 'BROKEN'}: ${promise} (${judged})`);
      broken.push(...violations);
    }
    assert.deepEqual(broken, []);
  });
});
