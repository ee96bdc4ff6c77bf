import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { readCatalogue } from '../feed-model/model/mirror.js';
import { sample } from '../feed-model/model/plan.js';
import { settingsPages, PAGES } from '../site/pages.js';
import { eventually } from '../support/eventually.js';
import { signIn } from '../support/http/visitor.js';
import type { Verdict } from './checks/check.js';
import { flatCheck } from './checks/flat.js';
import { healingCheck } from './checks/healing.js';
import { keysCheck } from './checks/keys.js';
import { limitsCheck } from './checks/limits.js';
import { mirrorsCheck } from './checks/mirrors.js';
import { Deployment } from './deployment.js';
import { doFault, FAULTS } from './faults.js';
import { History, readHistory } from './history.js';
import { Sampler } from './samples.js';
import { Calls, viewPages } from './traffic/calls.js';
import { Keyring } from './traffic/keys.js';
import { startFollowers } from './traffic/mirrors.js';
import { writeTitles } from './traffic/writers.js';

/** How a run is done. All but `seconds` is about its pace. */
export interface SoakOptions {
  readonly seconds: number;
  /** From the start of a fault to that of the next one. */
  readonly faultSeconds: number;
  /** How long the cause of a fault stays. */
  readonly lastsSeconds: number;
  /** Faults to do, by their names; by default all, in an order that the seed decides. */
  readonly faults?: readonly string[];
  /** Calls a second; undefined for half of what is answered at most. */
  readonly rate: number | undefined;
  readonly seed: number;
  /** Where the history goes. */
  readonly folder: string;
  /** Whether two servers stand behind a balancer, where there is one. */
  readonly isBalanced: boolean;
  /** Factor of the pauses of everything but calls. */
  readonly pace: number;
  readonly say: (line: string) => void;
}

/** What a run came to. */
export interface SoakResult {
  readonly history: string;
  readonly verdicts: readonly (Verdict & { readonly promise: string })[];
  /** What the machine lacks, and what was left out without it. */
  readonly missing: readonly string[];
}

const CHECKS = [keysCheck, mirrorsCheck, limitsCheck, healingCheck, flatCheck];

const DEVELOPERS = 6;
const WRITERS = 2;

/** Seconds as fast as possible, by which half of the load is found. */
const CALIBRATION_MS = 5_000;

/** Calls in a row that new processes have answered in time before requests are judged, and a bound on that. */
const WARMING_CALLS = 100;
const WARMING_MS = 60_000;

/** Pauses in milliseconds. */
const PAUSES = { churn: 900, views: 700, writes: 400, samples: 5_000 };

/** Runs servers under load with one fault after the other, records all that happens, and checks what was recorded. */
export async function soak(options: SoakOptions): Promise<SoakResult> {
  const file = join(options.folder, 'history.ndjson');
  const history = new History(file);
  const missing: string[] = [];
  const deployment = await Deployment.start(history, options.isBalanced);
  try {
    if (options.isBalanced && deployment.balancer === undefined) missing.push('HAProxy');
    await runTraffic(deployment, history, options, missing);
  } finally {
    await deployment.stop();
    history.close();
  }
  const verdicts = CHECKS.map((check) => ({ promise: check.promise, ...check.judge(() => readHistory(file)) }));
  return { history: file, verdicts, missing };
}

async function runTraffic(
  deployment: Deployment,
  history: History,
  options: SoakOptions,
  missing: string[],
): Promise<void> {
  const { pace, say } = options;
  const { db, url } = deployment;
  const keyring = new Keyring(deployment, history);
  await keyring.open(DEVELOPERS);
  const { key, prefix, developer } = await keyring.newKey();
  const visitor = await signIn({ url, db }, developer);
  const pages = [...PAGES, ...settingsPages(prefix)];

  const rate = options.rate ?? (await measureHalf(url, keyring, history));
  await warmUp(url, keyring, history);
  say(`${rate.toFixed(0)} calls a second for ${options.seconds} s`);
  history.note({ kind: 'begin', at: new Date().toISOString(), seed: options.seed, rate });

  const since = Math.floor(Date.now() / 1000) - 1;
  const { followers, missing: languages } = await startFollowers(history, {
    url,
    key,
    since,
    intervalSeconds: Math.max(0.2, pace),
  });
  missing.push(...languages);
  const stop = new AbortController();
  const { signal } = stop;
  const calls = new Calls(url, keyring, history);
  calls.start(rate);
  const sampler = new Sampler(deployment, history, PAUSES.samples * pace);
  const loops = [
    ...Array.from({ length: WRITERS }, () => writeTitles(db, { history, pauseMs: PAUSES.writes * pace, signal })),
    keyring.churn(PAUSES.churn * pace, (changed) => calls.call(changed, '/api/v1/me'), signal),
    viewPages(visitor, pages, { history, pauseMs: PAUSES.views * pace, signal }),
  ];
  try {
    // A loop that fails ends the run.
    await Promise.race([disturb({ deployment, followers }, history, options), Promise.all(loops)]);
    stop.abort();
    await Promise.all(loops);
    await calls.stop();
    const titles = await readCatalogue(db);
    const newest = titles.reduce((latest, { updated_at: stamp }) => (stamp > latest ? stamp : latest), '');
    await Promise.all(followers.map((follower) => follower.finish(newest)));
    history.note({ kind: 'catalogue', titles });
  } finally {
    stop.abort();
    sampler.stop();
    await Promise.all([calls.stop(), ...followers.map((follower) => follower.kill())]);
  }
}

/** Does faults at intervals until the time is over. */
async function disturb(
  stage: Parameters<(typeof FAULTS)[number]['strike']>[0],
  history: History,
  { seconds, faultSeconds, lastsSeconds, faults, seed, say }: SoakOptions,
): Promise<void> {
  const begin = performance.now();
  const known = FAULTS.filter(({ needs }) => needs === undefined || stage.deployment.balancer !== undefined);
  const order =
    faults?.flatMap((name) => known.filter((fault) => fault.name === name)) ??
    sample(seed, fc.shuffledSubarray([...known], { minLength: known.length, maxLength: known.length }));
  const until = async (second: number): Promise<void> => {
    await delay(Math.max(0, begin + second * 1000 - performance.now()));
  };
  for (let turn = 0; (turn + 1) * faultSeconds <= seconds; turn += 1) {
    await until((turn + 0.5) * faultSeconds);
    const fault = order[turn % order.length];
    if (fault === undefined || (faults !== undefined && turn >= order.length)) break;
    say(`${((performance.now() - begin) / 1000).toFixed(0)} s: ${fault.name}`);
    await doFault(fault, stage, history, lastsSeconds * 1000);
  }
  await until(seconds);
}

/** Measures half of the calls a second that are answered when each client calls without a pause. */
async function measureHalf(url: string, keyring: Keyring, history: History): Promise<number> {
  const calls = new Calls(url, keyring, history);
  calls.start(Infinity);
  await delay(CALIBRATION_MS);
  await calls.stop();
  return calls.count / (CALIBRATION_MS / 1000) / 2;
}

/** Calls until the servers have answered many calls in a row: the first ones are slow, on a busy machine too slow. */
async function warmUp(url: string, keyring: Keyring, history: History): Promise<void> {
  const calls = new Calls(url, keyring, history);
  calls.start(WARMING_CALLS);
  await eventually('the servers answer in time', () => calls.inARow >= WARMING_CALLS, WARMING_MS);
  await calls.stop();
}
