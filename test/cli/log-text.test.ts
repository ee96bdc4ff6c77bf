import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';
import { stripVTControlCharacters } from 'node:util';
import { textFormatter } from '../../src/commands/serve/log-text.js';
import { createLog } from '../../src/platform/telemetry/log.js';
import { eventually } from '../support/eventually.js';
import { CLI, startServer } from '../support/program.js';
import { skipWithout } from '../support/programs/skip.js';
import { send } from '../support/request.js';
import { testWorld } from '../support/world.js';

const TIME = String.raw`\d\d:\d\d:\d\d\.\d{3}`;

/** Writes entries to a log. @returns their lines as text, with colours or without */
function textOf(write: (log: ReturnType<typeof createLog>) => void, { hasColors = false } = {}): string {
  let text = '';
  const format = textFormatter(hasColors);
  write(createLog('trace', { write: (line: string) => (text += format(line)) }));
  return text;
}

describe('the log as text', () => {
  it('an entry is one line of the local time, the level, the message and its members', () => {
    const text = textOf((log) =>
      log.info(
        {
          url: 'http://h:1',
          attempts: 3,
          missing: undefined,
          none: null,
          empty: [],
          few: ['a'],
          many: [1, 2, 3, 4, 5, 6],
        },
        'listening',
      ),
    );
    assert.match(text, new RegExp(`^${TIME}  info   listening  url=http://h:1 attempts=3 few=\\["a"\\] many=6\n$`));
    const at = new Date();
    const line = textFormatter(false)(JSON.stringify({ time: at.toISOString(), level: 40, msg: 'x' }));
    assert.ok(line.startsWith(`${at.toTimeString().slice(0, 8)}.`), line);
  });

  for (const [what, entry, expected] of [
    [
      'a served request',
      { status: 200, duration_ms: 3.21, key_prefix: 'svc_abcdefgh' },
      '200  GET /a  3.2 ms  key=svc_abcdefgh request_id=r1',
    ],
    ['a refused request', { status: 401, duration_ms: 12.7 }, '401  GET /a  13 ms  request_id=r1'],
    ['a failed request', { status: 503, duration_ms: 1 }, '503  GET /a  1.0 ms  request_id=r1'],
    [
      'a request whose client left',
      { duration_ms: 1, aborted: true },
      '---  GET /a  1.0 ms  aborted=true request_id=r1',
    ],
  ] as const) {
    it(`${what} is one line of its status, method, path and duration`, () => {
      const request = { request_id: 'r1', operation: 'getMe', method: 'GET', url: '/a', ...entry };
      assert.match(
        textOf((log) => log.info(request, 'request')),
        new RegExp(`^${TIME}  info   ${expected}\n$`),
      );
    });
  }

  it('an error is shown with its causes, and with its stack if the entry is an error too', () => {
    const err = new Error('cannot read', { cause: new Error('refused') });
    assert.match(
      textOf((log) => log.warn({ err }, 'redis lost')),
      new RegExp(`^${TIME}  warn   redis lost  cannot read: refused\n$`),
    );
    const repeated = new Error('connect refused', { cause: new Error('refused') });
    assert.match(
      textOf((log) => log.warn({ err: repeated }, 'redis lost')),
      new RegExp(`^${TIME}  warn   redis lost  connect refused\n$`),
    );
    const [first, ...stack] = textOf((log) => log.error({ err }, 'failed'))
      .trimEnd()
      .split('\n');
    assert.match(first ?? '', /error {2}failed {2}cannot read: refused$/);
    assert.ok(stack.length > 2 && stack.every((frame) => /^ {4}at /.test(frame)), stack.join('\n'));
  });

  it('foreign text cannot control the terminal', () => {
    const evil = '\u001b[2J\u202e\nx';
    const text = textOf((log) => {
      log.error({ url: evil, status: 500, err: new Error(evil), key_prefix: evil, method: 'GET' }, 'request');
      log.info({ [`a`]: evil, b: { c: evil } }, evil);
    });
    assert.doesNotMatch(text, /(?!\n)[\p{Cc}\u202e]/u);
    assert.equal(text.match(/\n(?!\d\d:| {4}at |$)/g), null, text);
  });

  it('colours change nothing but the looks', () => {
    const write: Parameters<typeof textOf>[0] = (log) => {
      log.info({ method: 'GET', url: '/a', status: 404, duration_ms: 1 }, 'request');
      log.fatal({ err: new Error('x') }, 'failed');
    };
    const withoutTimes = (text: string): string =>
      text.replaceAll(new RegExp(TIME, 'g'), '').replaceAll(/^ +at .*$/gm, '');
    const coloured = textOf(write, { hasColors: true });
    assert.ok(coloured.includes('\u001b[33m404\u001b[39m'), coloured);
    assert.equal(withoutTimes(stripVTControlCharacters(coloured)), withoutTimes(textOf(write)));
  });

  describe('of a server', () => {
    const world = testWorld();

    /** Runs a server on a terminal of its own. @returns what it has written there after one request */
    async function logOnTerminal(environment: Readonly<Record<string, string>>): Promise<string> {
      const settings = {
        ...world.environment,
        PORT: '0',
        METRICS_ADDRESS: 'off',
        DRAIN_SECONDS: '0',
        SITE: 'off',
        ...environment,
      };
      // script runs its command on a pseudo-terminal.
      const child = spawn('script', ['-qefc', `exec "${process.execPath}" "${CLI}" serve`, '/dev/null'], {
        env: { PATH: process.env.PATH, TERM: 'xterm-256color', ...settings },
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      let output = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
      const plain = (): string => stripVTControlCharacters(output);
      try {
        const [, url = ''] = await eventually('the server listens', () => /url"?[=:]"?(http:[^\s"]+)/.exec(plain()));
        await send(url, '/api/v1/me', { headers: { 'x-request-id': 'one' } });
        await eventually('the request is logged', () => plain().includes('/api/v1/me'));
      } finally {
        const ended = once(child, 'close');
        // Ctrl-C.
        child.stdin.write('\u0003');
        await ended;
      }
      return output;
    }

    before(function () {
      if (process.platform !== 'linux' || spawnSync('script', ['--version']).status !== 0) {
        skipWithout('script of util-linux', this);
      }
    });

    it('a server writes coloured text to a terminal', async () => {
      const output = await logOnTerminal({});
      assert.ok(output.includes('\u001b[33m401\u001b[39m  GET /api/v1/me '), output);
      assert.doesNotMatch(output, /"msg"/);
    });

    it('NO_COLOR leaves the colours out', async () => {
      const output = await logOnTerminal({ NO_COLOR: '1' });
      assert.match(output, new RegExp(`^${TIME}  info   401  GET /api/v1/me  [\\d.]+ ms  request_id=one\r?$`, 'm'));
      assert.ok(!output.includes('\u001b['));
    });

    it('LOG_FORMAT=json writes JSON to a terminal too', async () => {
      assert.match(
        await logOnTerminal({ LOG_FORMAT: 'json' }),
        /^\{"level":30,.*"request_id":"one".*"msg":"request"\}\r?$/m,
      );
    });

    it('LOG_FORMAT=text writes text without colours to a pipe', async () => {
      const server = await startServer({ ...world.environment, LOG_FORMAT: 'text' });
      const { stdout } = await server.stop();
      assert.match(stdout, new RegExp(`^${TIME}  info   listening  url=http://127`, 'm'));
      assert.ok(!stdout.includes('"msg"') && !stdout.includes('\u001b'), stdout);
    });
  });
});
