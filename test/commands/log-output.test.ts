import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { scrape } from '../support/http/exposition.js';
import { eventually } from '../support/eventually.js';
import { runProgram, startProgram, type RunningProgram } from '../support/program.js';
import { freePort } from '../support/programs/free-port.js';
import { HeldPipe, PIPE_BYTES } from '../support/programs/held-pipe.js';
import { send } from '../support/request.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { skipWithout } from '../support/programs/skip.js';
import { testWorld } from '../support/world.js';

const DROPPED = 'catalog_log_lines_dropped_total';

/** The most that a server keeps for a slow reader, in bytes. */
const MOST_KEPT = 1_048_576;

/** A path that makes a long line, although nothing in it may be a part of a key. */
const LONG_PATH = `/nope/${'elevenChars/'.repeat(16)}`;

/** More long lines than a server keeps. */
const LINES_TOO_MANY = 4_000;

/** The members of a line of the log that these tests check. */
interface Line {
  readonly msg: string;
  readonly dropped_lines?: number;
}

describe('the log of a server', () => {
  const world = testWorld();
  const running: RunningProgram[] = [];

  before(function () {
    // Only there can a test hold a pipe and fill a disk.
    if (process.platform !== 'linux') skipWithout('Linux', this);
  });

  afterEach(async () => {
    for (const { child, ended } of running.splice(0)) {
      child.kill('SIGKILL');
      await ended;
    }
  });

  interface Server extends RunningProgram {
    readonly url: string;
    readonly droppedLines: () => Promise<number>;
    /** Requests a path so many times, and waits for all responses. */
    request(times: number, path?: string): Promise<void>;
  }

  /** Starts a server whose log goes to a file descriptor, and waits until it serves. */
  async function start(options: Parameters<typeof startProgram>[2]): Promise<Server> {
    const [port, metricsPort] = [await freePort(), await freePort()];
    const url = `http://127.0.0.1:${port}`;
    const metricsUrl = `http://127.0.0.1:${metricsPort}/metrics`;
    const program = startProgram(
      ['serve'],
      { ...world.environment, PORT: String(port), METRICS_ADDRESS: `127.0.0.1:${metricsPort}` },
      options,
    );
    running.push(program);
    await eventually('the server serves its metrics', async () => (await send(metricsUrl, '/metrics')).status === 200);
    await eventually('the server listens', async () => (await send(url, '/livez')).status === 200);
    return {
      ...program,
      url,
      droppedLines: async () => (await scrape(metricsUrl)).series.get(DROPPED) ?? assert.fail('no such metric'),
      async request(times, path = '/nope') {
        const agent = new Agent({ keepAlive: true, maxSockets: 40 });
        const replies = await Promise.all(Array.from({ length: times }, () => send(url, path, { agent })));
        agent.destroy();
        assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([404]));
      },
    };
  }

  function linesOf(text: string): Line[] {
    return text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Line);
  }

  function countRequests(lines: readonly Line[]): number {
    return lines.filter(({ msg }) => msg === 'request').length;
  }

  function sumOfLosses(lines: readonly Line[]): number {
    return lines.reduce((sum, { dropped_lines: lost = 0 }) => sum + lost, 0);
  }

  it('a server whose log is not read keeps a bounded number of lines and counts the others', async () => {
    const pipe = await HeldPipe.open();
    const server = await start({ stdout: pipe.writer });
    pipe.handOver();
    await server.request(LINES_TOO_MANY, LONG_PATH);
    const droppedLines = await eventually('lines are dropped', async () => (await server.droppedLines()) || undefined);
    assert.equal((await send(server.url, '/livez')).status, 200);
    const stalled = pipe.read().length;

    // With the request that found it serving, and the one above.
    const sent = LINES_TOO_MANY + 2;
    const text = await eventually('all lines are there or counted', () => {
      const now = pipe.read();
      const lines = linesOf(now);
      return countRequests(lines) + sumOfLosses(lines) >= sent && now;
    });
    const lines = linesOf(text);
    // On a busy machine, a server may miss its database for a moment, and drop the line about it as well.
    const others = countRequests(lines) + sumOfLosses(lines) - sent;
    assert.ok(others <= 2, `${others} more lines than requests`);
    assert.equal(await server.droppedLines(), sumOfLosses(lines));
    assert.ok(sumOfLosses(lines) >= droppedLines && droppedLines > 0, String(droppedLines));
    assert.ok(text.length - stalled <= MOST_KEPT + PIPE_BYTES, `${text.length} bytes were kept`);
    assert.equal(lines.filter(({ dropped_lines: lost }) => lost !== undefined).length, 1);

    await server.request(10);
    const flowing = countRequests(lines) + 10;
    await eventually('further lines flow', () => countRequests(linesOf(pipe.read())) === flowing);
    server.child.kill('SIGTERM');
    const { code, stderr } = await server.ended;
    assert.deepEqual([code, stderr], [0, '']);
    assert.equal(linesOf(pipe.read()).at(-1)?.msg, 'stopped');
    pipe.leave();
  });

  it('a server ends in order with code 1 when the reader of its log leaves', async () => {
    const pipe = await HeldPipe.open();
    const server = await start({ stdout: pipe.writer });
    pipe.handOver();
    await eventually('the first request is logged', () => countRequests(linesOf(pipe.read())) === 1);
    pipe.leave();
    // It is answered although nobody reads its line.
    await server.request(1);
    const { code, stderr } = await server.ended;
    assert.equal(code, 1);
    assert.equal(stderr, 'catalog: Nothing is reading the log on standard output any more; the server has stopped.\n');
  });

  it('a log is complete again once a full disk has room', async () => {
    const path = join(await temporaryFolder(), 'log');
    const file = openSync(path, 'a');
    // 16 KiB.
    const server = await start({ stdout: file, fileBlocks: 32 });
    closeSync(file);
    const sent = 300;
    await server.request(sent);
    await eventually('the disk is full', () => readFileSync(path).length === 32 * 512);
    execFileSync('prlimit', ['--pid', String(server.child.pid), '--fsize=unlimited']);
    await server.request(5);
    // With the request that found it serving.
    await eventually(
      'each request is in the log',
      () => countRequests(linesOf(readFileSync(path, 'utf8'))) === sent + 6,
    );
    server.child.kill('SIGTERM');
    const { code, stderr } = await server.ended;
    assert.deepEqual([code, stderr], [0, '']);
  });
});

describe('a command whose output cannot be written', () => {
  it('a command whose output cannot be written reports it on stderr and ends with code 1', async function () {
    if (!existsSync('/dev/full')) skipWithout('/dev/full', this);
    const device = openSync('/dev/full', 'w');
    const { ended } = startProgram(['--help'], {}, { stdout: device });
    closeSync(device);
    const { code, stderr } = await ended;
    assert.match(stderr, /^catalog: the output cannot be written: ENOSPC: .+\n$/);
    assert.equal(code, 1);
    assert.equal((await runProgram(['--help'], {})).code, 0);
  });
});
