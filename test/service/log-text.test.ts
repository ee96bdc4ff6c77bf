import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';
import { stripVTControlCharacters } from 'node:util';
import { terminalFormatter } from '../../src/service/server-log.js';
import { createLog } from '../../src/platform/telemetry/log.js';
import { eventually } from '../support/eventually.js';
import { builtProgram } from '../support/program.js';
import { skipWithout } from '../support/programs/skip.js';
import { send } from '../support/request.js';
import { testWorld } from '../support/world.js';

describe('the log on a terminal', () => {
  it('foreign text cannot control the terminal, nor pass for a line of the log', async () => {
    const evil = '\u001b[2J\u009b2J\u202e\n[12:00:00.000] INFO: x';
    const format = await terminalFormatter(false);
    let text = '';
    const log = createLog('trace', { write: (line: string) => (text += format(line)) });
    log.error({ url: evil, err: new Error(evil, { cause: new Error(evil) }) }, 'request');
    log.info({ a: { b: evil } }, evil);
    assert.doesNotMatch(text, /(?!\n)[\p{Cc}\u202e]/u);
    assert.equal(text.match(/^\[/gm)?.length, 2, text);
  });

  describe('of a server', () => {
    const world = testWorld();

    before(function () {
      if (process.platform !== 'linux' || spawnSync('script', ['--version']).status !== 0) {
        skipWithout('script of util-linux', this);
      }
    });

    /** Runs a server on a terminal of its own. @returns what it has written there after one request */
    async function logOnTerminal(environment: Readonly<Record<string, string>>): Promise<string> {
      const settings = { PORT: '0', METRICS_ADDRESS: 'off', DRAIN_SECONDS: '0', SITE: 'off', ...environment };
      // script runs its command on a pseudo-terminal.
      const child = spawn('script', ['-qefc', `exec "${process.execPath}" "${builtProgram()}" serve`, '/dev/null'], {
        env: { PATH: process.env.PATH, TERM: 'xterm-256color', ...world.environment, ...settings },
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      let output = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
      const plain = (): string => stripVTControlCharacters(output);
      try {
        const [, url = ''] = await eventually('the server listens', () => /"url":"(http:[^"]+)"/.exec(plain()));
        await send(url, '/nope/%1b[2J', { headers: { 'x-request-id': 'one' } });
        await eventually('the request is logged', () => plain().includes('"request_id":"one"'));
      } finally {
        const ended = once(child, 'close');
        // Ctrl-C.
        child.stdin.write('\u0003');
        await ended;
      }
      return output;
    }

    it('a server writes coloured text to a terminal, and JSON if LOG_FORMAT is json', async () => {
      const [coloured = '', json = ''] = await Promise.all([{}, { LOG_FORMAT: 'json' }].map(logOnTerminal));
      assert.ok(coloured.includes('\u001b[32mINFO\u001b[39m: \u001b[36mrequest') && !coloured.includes('\u001b[2J'));
      const plain = stripVTControlCharacters(coloured);
      assert.match(plain, /^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: request \{"request_id":"one",.*"status":404,.*\}\r?$/m);
      assert.match(json, /^\{"level":30,.*"request_id":"one".*"msg":"request"\}\r?$/m);
    });
  });
});
