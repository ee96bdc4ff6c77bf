import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { getChangesPage } from '../../../src/catalog/changes.js';
import { asPosition, beforeRounding, parseSince } from '../../../src/catalog/since.js';
import { readFrom } from '../../../src/platform/postgres/replica.js';
import { systemClock, toRfc3339, toSeconds, type Micros } from '../../../src/platform/time/micros.js';
import { LONG } from '../../support/catalog/chance.js';
import { pastTriggers } from '../../support/postgres/past-triggers.js';
import { skipWithout } from '../../support/programs/skip.js';
import { findProgram } from '../../support/programs/system-program.js';
import { readGuide } from '../../support/guides.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { addTitles, removeTitles } from '../../support/titles.js';
import { testWorld } from '../../support/world.js';
import { startScripted } from '../scripted-server.js';

const SECOND = 1_000_000n;

/** Digits that languages print: PHP and Lua 14, Perl, R and SQLite 15. With 16 and 17 nothing is lost. */
const DIGITS = [14, 15, 16, 17] as const;
const EXACT: readonly number[] = [16, 17];

/** Followers in other languages: the program that runs each, and the loop of the guide by what marks it there. */
const FOLLOWERS = [
  { title: 'Node.js', fence: 'js', program: 'node', file: 'loop.mjs', args: [] },
  { title: 'Python', fence: 'python', program: 'python3', file: 'loop.py', args: [] },
  { title: 'PHP', fence: 'php', program: 'php', file: 'loop.php', args: [] },
  { title: 'Go', fence: 'go', program: 'go', file: 'loop.go', args: ['run'] },
] as const;

/** Prints a position with so many digits. Trailing zeros make no difference. */
function printed(position: Micros, digits: number): string {
  return toSeconds(position).toPrecision(digits);
}

describe('a client whose language prints a position with fewer digits', () => {
  const world = testWorld({ service: true });
  /** An hour ago, at a whole second. */
  let second: Micros;

  before(() => {
    second = (systemClock() / SECOND - 3_600n) * SECOND;
  });

  beforeEach(() => removeTitles(world.service.db));

  /** Adds titles with these stamps. */
  async function addTitlesAt(stamps: readonly Micros[]): Promise<void> {
    const rows = stamps.map((stamp) => {
      const at = toRfc3339(stamp);
      return { svc_id: `t${stamp}`, media_type: 'movie', title: 'T', created_at: at, updated_at: at };
    });
    await pastTriggers(world.service.db, 'titles', (transaction) => transaction.batchInsert('titles', rows, 500));
  }

  /** Reads the page after a printed position. */
  async function read(position: string): Promise<{ ids: string[]; hasMore: boolean; next: Micros }> {
    const { db } = world.service;
    const page = await getChangesPage(db, readFrom(db), parseSince([position]), systemClock());
    return { ids: page.entries.map(({ svc_id: id }) => id), hasMore: page.hasMore, next: page.nextSince };
  }

  // After the year 2106, 17 digits of a double no longer round to its microsecond.
  it('gets a page that begins at the position or up to 100 µs before it', () => {
    const position = fc.bigInt({ min: 1_000_000_000n * SECOND, max: 4_294_967_295n * SECOND }).map(asPosition);
    fc.assert(
      fc.property(position, fc.constantFrom(...DIGITS), (sent, digits) => {
        const start = beforeRounding(parseSince([printed(sent, digits)]));
        assert.ok(start <= sent && start >= sent - 100n, `${sent} ${start}`);
        if (EXACT.includes(digits)) assert.equal(start, sent);
      }),
      { numRuns: 5_000 * LONG },
    );
  });

  it('misses no entry wherever a page of a dense feed ends', async () => {
    const stamps: Micros[] = [];
    for (let stamp = second - 150n; stamp < second + 150n; stamp += 1n) if (stamp % 10n !== 0n) stamps.push(stamp);
    await addTitlesAt(stamps);
    for (const digits of DIGITS) {
      // Every entry is the last of a page once.
      for (const [index, stamp] of stamps.entries()) {
        const { ids, hasMore, next } = await read(printed(stamp, digits));
        const first = ids[0] === undefined ? index + 1 : stamps.indexOf(BigInt(ids[0].slice(1)));
        const place = `${digits} digits of ${stamp}`;
        assert.ok(first <= index + 1, `${place}: a gap`);
        const page = stamps.slice(first, first + 200);
        assert.deepEqual(
          ids,
          page.map((each) => `t${each}`),
          place,
        );
        if (EXACT.includes(digits)) assert.equal(first, index + 1, `${place}: a repeat`);
        assert.equal(hasMore, first + 200 < stamps.length, place);
        if (hasMore) assert.ok(next >= stamp + 100n, `${place}: no headway`);
      }
    }
  });

  /** Adds dense writes. @returns the ids of all entries, in order */
  async function addDenseTitles(): Promise<string[]> {
    for (let write = 0; write < 3; write += 1) await addTitles(world.service.db, 999, `w${write}`);
    return world.service.db('titles').orderBy('updated_at').pluck<string[]>('svc_id');
  }

  it('gets every entry of dense writes in Perl, which loses digits', async function () {
    const all = await addDenseTitles();
    const script = fileURLToPath(new URL('follow.pl', import.meta.url));
    const lines = await run(this, 'perl', [script], {
      BASE_URL: world.service.url,
      CATALOG_API_KEY: world.service.key,
      SINCE: String(second / SECOND),
    });
    assert.deepEqual([...new Set(lines)].sort(), all.sort());
  });

  for (const follower of FOLLOWERS) {
    it(`gets every entry of dense writes once by the loop of the guide in ${follower.title}`, async function () {
      const all = await addDenseTitles();
      assert.deepEqual(await runLoop(this, follower, world.service.url, world.service.key), all);
    });
  }
});

describe('the loops of the guide while a service is down', () => {
  const page = (id: string, hasMore: boolean): object => ({
    data: [{ svc_id: id, media_type: 'movie', title: 'T', updated_at: '2026-11-20T23:40:05.123456Z' }],
    meta: { has_more: hasMore, next_since: 1795218005.123456 },
  });
  /** The response of a proxy whose service is down. */
  const proxy = { status: 503, headers: { 'Content-Type': 'text/html' }, body: '<html>' };

  for (const follower of FOLLOWERS) {
    it(`the loop in ${follower.title} waits longer each time, whatever fails, and at least as long as Retry-After says`, async function () {
      const server = await startScripted([
        proxy,
        { cut: 'body', body: page('first', true) },
        { body: page('first', true) },
        { status: 429, headers: { 'Retry-After': '2' }, body: {} },
        { body: page('last', false) },
      ]);
      try {
        assert.deepEqual(await runLoop(this, follower, server.url, 'k'), ['first', 'last']);
        const times = server.requests.map(({ at }) => at);
        const waits = times.slice(1).map((at, index) => Math.round((at - (times[index] ?? 0)) / 100) / 10);
        for (const [index, seconds] of [1, 2, 0, 2].entries()) {
          assert.ok((waits[index] ?? -1) >= seconds, `wait ${index + 1} of ${waits.join(', ')} s`);
        }
        assert.equal(waits.length, 4);
      } finally {
        await server.stop();
      }
    });
  }
});

/** Runs a program, or skips the test without it. @returns the lines that it printed */
async function run(
  test: Mocha.Context,
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<string[]> {
  const path = findProgram({ title: program, programs: [program], debianPackages: [], packages: [] });
  if (path === undefined) skipWithout(program, test);
  const options = { env: { ...process.env, ...env }, maxBuffer: 1e8 };
  const { stdout }: { stdout: string } = await promisify(execFile)(path, args, options);
  return stdout.trim().split('\n');
}

/** Runs a loop of the guide against an address. @returns the ids that it printed */
async function runLoop(
  test: Mocha.Context,
  { fence, program, file, args }: (typeof FOLLOWERS)[number],
  url: string,
  key: string,
): Promise<(string | undefined)[]> {
  const loop = new RegExp(`\`\`\`${fence}\\n([\\s\\S]+?)\`\`\``).exec(await readGuide('following-the-feed'))?.[1];
  const script = join(await temporaryFolder(), file);
  await writeFile(script, (loop ?? '').replace('http://127.0.0.1:8080', url));
  const lines = await run(test, program, [...args, script], { CATALOG_API_KEY: key });
  return lines.map((line) => line.split(' ')[1]);
}
