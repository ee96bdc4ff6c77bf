import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { PAGES, settingsPages } from '../../pages/pages.js';
import { sample, SEED, withSeed } from '../../support/catalog/chance.js';
import { eventually } from '../../support/eventually.js';
import { ROOT } from '../../support/guides.js';
import { signIn } from '../../support/http/visitor.js';
import { skipWithout } from '../../support/programs/skip.js';
import { findProgram, HAPROXY } from '../../support/programs/system-program.js';
import { addTitles } from '../../support/titles.js';
import { testWorld } from '../../support/world.js';
import { Calls, TITLES, viewPages } from './calls.js';
import { flatCheck, healingCheck, keysCheck } from './checks.js';
import { Deployment } from './deployment.js';
import { doFault, FAULTS } from './faults.js';
import { History } from './history.js';
import { Keyring } from './keys.js';

const FOLDER = fileURLToPath(new URL('.cache/soak', ROOT));

const DEVELOPERS = 6;

/** The length of the run in minutes, and calls a second. SEED decides the order of the faults. */
const MINUTES = Number(process.env.MINUTES ?? 5);
const RATE = Number(process.env.RATE ?? 60);

/** The longest time from one fault to the next, in seconds. A short run does every fault once as well. */
const FAULT_SECONDS = 120;

/** How long the cause of a fault stays: a part of the time until the next one, and seconds at most. */
const LASTS_PART = 0.1;
const LASTS_SECONDS = 12;

describe(`a soak of ${MINUTES} minutes`, function () {
  this.timeout(0);
  const world = testWorld({ ownServer: true, redis: true });
  const history = new History();

  after(async () => {
    await mkdir(FOLDER, { recursive: true });
    await history.save(join(FOLDER, 'history.ndjson'));
  });

  /** Does one fault after the other, in an order that the seed decides, until the time is over. */
  async function disturb(deployment: Deployment): Promise<void> {
    const begin = performance.now();
    const [seconds, faults] = [MINUTES * 60, FAULTS.length];
    const order = sample(SEED, fc.shuffledSubarray([...FAULTS], { minLength: faults, maxLength: faults }));
    const interval = Math.min(FAULT_SECONDS, seconds / faults);
    const until = (second: number): Promise<unknown> => delay(Math.max(0, begin + second * 1000 - performance.now()));
    for (let turn = 0; (turn + 1) * interval <= seconds; turn += 1) {
      await until((turn + 0.5) * interval);
      const fault = order[turn % faults];
      if (fault) await doFault(fault, deployment, history, Math.min(LASTS_SECONDS, interval * LASTS_PART) * 1_000);
    }
    await until(seconds);
  }

  it(withSeed('every promise is kept while servers run under load and one fault follows the other'), async function () {
    const deployment = await Deployment.start(world, findProgram(HAPROXY) ?? skipWithout('HAProxy', this));
    const { url } = deployment;
    await addTitles(world.db, TITLES.length);
    const keyring = new Keyring(world, history);
    await keyring.open(DEVELOPERS);
    const { prefix, developerId } = await world.newKey();
    const visitor = await signIn({ url, db: world.db }, developerId);
    const calls = new Calls(url, keyring, history);
    const stop = new AbortController();
    world.defer(() => calls.stop());
    calls.start(RATE);
    await eventually('the servers answer', () => calls.areWarm);
    world.defer(deployment.sample(history));
    const loops = [
      keyring.churn((changed) => calls.call(changed, '/api/v1/me'), stop.signal),
      viewPages(visitor, [...PAGES, ...settingsPages(prefix)], history, stop.signal),
    ];
    try {
      // A loop that fails ends the run.
      await Promise.race([disturb(deployment), Promise.all(loops)]);
    } finally {
      stop.abort();
      await Promise.all(loops);
    }
    const broken: string[] = [];
    for (const { promise, judge } of [keysCheck, healingCheck, flatCheck]) {
      const { judged, violations } = judge(history.events);
      console.log(`      ${violations.length === 0 ? 'kept' : 'BROKEN'}: ${promise} (${judged})`);
      broken.push(...violations);
    }
    assert.deepEqual(broken, [], 'all that happened is in .cache/soak/history.ndjson');
  });
});
