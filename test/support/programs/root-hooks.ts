import { setImmediate } from 'node:timers/promises';
import type { Context } from 'mocha';
import { eventually } from '../eventually.js';
import { killPrograms } from '../program.js';

// A rejection that nobody handles ends the service, but mocha reports nothing of it when it comes after its test.
const unhandled: unknown[] = [];
process.on('unhandledRejection', (reason) => unhandled.push(reason));

/** Fails the test or suite that has just ended if a promise was rejected that nothing handled. */
async function requireHandled(): Promise<void> {
  await setImmediate(); // Node.js reports rejections after the microtasks of a turn
  const reasons = unhandled.splice(0);
  if (reasons.length > 0)
    throw new AggregateError(reasons, 'A promise was rejected that nothing handles.', { cause: reasons[0] });
}

/** What mocha itself has open: the standard streams or the pipe to its parent, and the timer of the running hook. */
const OF_MOCHA = ['PipeWrap', 'TTYWrap', 'Timeout'];

/** @returns what else keeps this process: servers, sockets, programs, a second timer */
function leftOpen(): string[] {
  const open = process.getActiveResourcesInfo();
  const timers = open.filter((kind) => kind === 'Timeout').slice(1);
  return [...timers, ...open.filter((kind) => !OF_MOCHA.includes(kind))];
}

/** Called by mocha after each test, and after all tests, or after those of each file where several files run at a time. */
export const mochaHooks = {
  afterEach: requireHandled,
  async afterAll(this: Context): Promise<void> {
    killPrograms();
    await requireHandled();
    await eventually('nothing is left open', () => leftOpen().length === 0).catch(() => {
      const files = this.test?.parent?.suites.map(({ file }) => file) ?? [];
      throw new Error(`Left open by ${[...new Set(files)].join(', ')}: ${leftOpen().join(', ')}`);
    });
  },
};
