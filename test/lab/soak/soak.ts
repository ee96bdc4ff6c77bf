import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { sample } from '../../support/catalog/chance.js';
import { settingsPages, PAGES } from '../../pages/pages.js';
import { eventually } from '../../support/eventually.js';
import { signIn } from '../../support/http/visitor.js';
import type { Deployment } from './deployment.js';
import { doFault, FAULTS } from './faults.js';
import type { History } from './history.js';
import { Sampler } from './samples.js';
import { Calls, viewPages } from './traffic/calls.js';
import { Keyring } from './traffic/keys.js';

const DEVELOPERS = 6;

/** Calls in a row that new processes have answered before requests are judged. */
const WARMING_CALLS = 100;

/** How long the cause of a fault stays: a part of the time until the next one, and seconds at most. */
const LASTS_PART = 0.1;
const LASTS_SECONDS = 12;

/**
 * Calls, changes keys and views pages while something is done to the deployment.
 *
 * @param rate - calls a second
 */
export async function withTraffic(
  deployment: Deployment,
  history: History,
  rate: number,
  act: () => Promise<void>,
): Promise<void> {
  const { db, url } = deployment;
  const keyring = new Keyring(deployment, history);
  await keyring.open(DEVELOPERS);
  const { prefix, developer } = await keyring.newKey();
  const visitor = await signIn({ url, db }, developer);
  const calls = new Calls(url, keyring, history);
  calls.start(rate);
  await eventually('the servers answer', () => calls.inARow >= WARMING_CALLS);

  const stop = new AbortController();
  const { signal } = stop;
  const sampler = new Sampler(deployment, history);
  const loops = [
    keyring.churn((changed) => calls.call(changed, '/api/v1/me'), signal),
    viewPages(visitor, [...PAGES, ...settingsPages(prefix)], history, signal),
  ];
  try {
    // A loop that fails ends the run.
    await Promise.race([act(), Promise.all(loops)]);
    stop.abort();
    await Promise.all(loops);
  } finally {
    stop.abort();
    sampler.stop();
    await calls.stop();
  }
}

/** Does one fault after the other, in an order that the seed decides, until the time is over. */
export async function disturb(
  deployment: Deployment,
  history: History,
  { seconds, faultSeconds, seed }: { readonly seconds: number; readonly faultSeconds: number; readonly seed: number },
): Promise<void> {
  const begin = performance.now();
  const order = sample(seed, fc.shuffledSubarray([...FAULTS], { minLength: FAULTS.length, maxLength: FAULTS.length }));
  const until = async (second: number): Promise<void> => {
    await delay(Math.max(0, begin + second * 1000 - performance.now()));
  };
  for (let turn = 0; (turn + 1) * faultSeconds <= seconds; turn += 1) {
    await until((turn + 0.5) * faultSeconds);
    const fault = order[turn % order.length];
    if (fault) await doFault(fault, deployment, history, Math.min(LASTS_SECONDS, faultSeconds * LASTS_PART) * 1_000);
  }
  await until(seconds);
}
