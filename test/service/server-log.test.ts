import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { readConfig } from '../../src/config/config.js';
import { openServerLog, type ServerLog } from '../../src/service/server-log.js';
import { eventually } from '../support/eventually.js';
import { HeldPipe } from '../support/programs/held-pipe.js';
import { skipWithout } from '../support/programs/skip.js';

function once(act: () => void): () => void {
  let isDone = false;
  return () => {
    if (!isDone) act();
    isDone = true;
  };
}

describe('the last lines of a log', () => {
  let pipe: HeldPipe;
  let serverLog: ServerLog;
  /** Runs what runs at the end of the process. It closes the pipe's end. */
  let exit: () => void;

  before(function () {
    if (process.platform !== 'linux') skipWithout('Linux', this);
  });

  beforeEach(async () => {
    pipe = await HeldPipe.open();
    serverLog = await openServerLog(
      { stdout: { fd: pipe.writer }, signal: new AbortController().signal, atExit: (act) => (exit = once(act)) },
      readConfig({}),
    );
  });

  afterEach(() => {
    exit();
    pipe.leave();
  });

  /** Logs a line that its reader does not take yet. */
  async function logUnread(line: string): Promise<void> {
    pipe.fill();
    serverLog.log.info(line);
    // The system has refused the line once it has done something else that was asked for later.
    await stat('/');
  }

  it('a server that ends waits for a slow reader', async () => {
    await logUnread('last line');
    const ended = serverLog.close().then(exit);
    await eventually('the last line arrives', () => pipe.read().includes('last line'));
    await ended;
  });

  it('a process that ends at once still writes what its reader, slow before, can take', async () => {
    await logUnread('first line');
    await eventually('the first line arrives', () => pipe.read().includes('first line'));
    await stat('/');
    for (let line = 1; line <= 10; line++) serverLog.log.info(`line ${line}`);
    exit();
    assert.ok(pipe.read().includes('line 10'));
  });

  it('a process that ends at once does not wait for a reader', async () => {
    await logUnread('last line');
    exit();
    assert.ok(!pipe.read().includes('last line'));
  });
});
