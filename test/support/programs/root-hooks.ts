import { readFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import type { Context } from 'mocha';
import { eventually } from '../eventually.js';
import { ROOT } from '../guides.js';
import { killPrograms, takeLastLines } from '../program.js';

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

/** The most characters of a line of an error. Generated texts are longer. */
const LONGEST_LINE = 400;

/** The first place in a suite that a stack names. */
const PLACE = /\b(test\/[^\s()]+\.test\.ts):(\d+):\d+\)?$/m;

/** Adds to an error the line that failed and the last lines of the programs of its test, and shortens its lines. */
function explain(error: Error): void {
  const [, file, line] = PLACE.exec(error.stack ?? '') ?? [];
  const code = file && readFileSync(new URL(file, ROOT), 'utf8').split('\n')[Number(line) - 1]?.trim();
  rewrite(error, (message) =>
    [message, ...(code ? [`${file}:${line}: ${code}`] : []), takeLastLines()].join('\n').trimEnd(),
  );
  for (let one: unknown = error; one instanceof Error; one = one.cause) rewrite(one, shorten);
}

/** Changes the message of an error, also in its stack. */
function rewrite(error: Error, change: (message: string) => string): void {
  const { message, stack = '' } = error;
  error.message = change(message);
  error.stack = stack.replace(message, () => error.message);
}

function shorten(text: string): string {
  return text.replace(/.+/g, (line) =>
    line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)} … (${line.length} characters)` : line,
  );
}

/** Called by mocha after each test, and after all tests, or after those of each file where several files run at a time. */
export const mochaHooks = {
  async afterEach(this: Context): Promise<void> {
    const error = this.currentTest?.err;
    if (error) explain(error);
    else takeLastLines();
    await requireHandled();
  },
  async afterAll(this: Context): Promise<void> {
    killPrograms();
    await requireHandled();
    await eventually('nothing is left open', () => leftOpen().length === 0).catch(() => {
      const files = this.test?.parent?.suites.map(({ file }) => file) ?? [];
      throw new Error(`Left open by ${[...new Set(files)].join(', ')}: ${leftOpen().join(', ')}`);
    });
  },
};
