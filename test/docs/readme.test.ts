import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import pino from 'pino';
import { prepareDemo } from '../../src/commands/demo.js';
import { SETTINGS } from '../../src/config.js';
import { ERROR_CODES } from '../../src/errors.js';
import { CallerCache } from '../../src/keys/caller-cache.js';
import { FailedAttempts } from '../../src/limits/failed-attempts.js';
import { combineWorkers, createMetrics } from '../../src/metrics.js';
import { Health } from '../../src/platform/health.js';
import { runProgram } from '../support/program.js';
import { send } from '../support/request.js';
import { startService, type TestService } from '../support/service.js';

const ROOT = new URL('../../', import.meta.url);

/** The cells of a Markdown table's rows, back-quotes removed. */
function rowsAfter(readme: string, heading: string): string[][] {
  const section = readme.split(`\n### ${heading}\n`)[1]?.split(/\n##/)[0] ?? assert.fail(`no section ${heading}`);
  return section
    .split('\n')
    .filter((line) => line.startsWith('| ') || line.startsWith('|-'))
    .slice(2)
    .map((line) =>
      line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map((cell) => cell.replaceAll('`', '').replaceAll('\\|', '|').trim()),
    );
}

/** What differs from one run to the next. */
function withoutWhatVaries(json: unknown): unknown {
  return JSON.parse(
    JSON.stringify(json)
      .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z/g, '(time)')
      .replace(/svc_\w{8}/g, '(key)')
      .replace(/"request_id":"[^"]+"/g, '"request_id":"(id)"'),
  );
}

describe('README', () => {
  let readme: string;

  before(async () => {
    readme = await readFile(new URL('README.md', ROOT), 'utf8');
  });

  it('lists every error code with its status, and no other', () => {
    assert.deepEqual(
      rowsAfter(readme, 'Errors')
        .map(([code, status]) => `${code ?? ''} ${status ?? ''}`)
        .sort(),
      Object.entries(ERROR_CODES)
        .map(([code, { status }]) => `${code} ${status}`)
        .sort(),
    );
  });

  it('lists every setting with its default, and no other', () => {
    assert.deepEqual(
      rowsAfter(readme, 'Settings').map(([name, fallback]) => [name, fallback]),
      SETTINGS.map(({ name, default: fallback }) => [name, fallback]),
    );
  });

  it('lists every metric of the service, and no other', async () => {
    const { metrics } = await createMetrics({
      packageRoot: fileURLToPath(ROOT),
      pools: {},
      health: new Health(pino({ enabled: false }), []),
      decisions: {},
      failedAttempts: new FailedAttempts(),
      cache: new CallerCache(),
    });
    const text = (await metrics.text()) + (await combineWorkers().text());
    const names = [...text.matchAll(/^# TYPE (catalog_\w+)/gm)].map(([, name]) => name);
    const listed = rowsAfter(readme, 'Metrics').flatMap(([name = '']) => name.match(/catalog_\w+/g) ?? []);
    assert.deepEqual(listed.sort(), names.sort());
  });

  it('names only commands and options that there are', async () => {
    const mentioned =
      readme.match(
        /catalog (?:serve|migrate|import|follow|demo|usage|(?:plans|developers|keys|stats) [a-z]+)\b[^`\n|]*/g,
      ) ?? [];
    assert.ok(mentioned.length > 10);
    for (const text of new Set(mentioned)) {
      const command = /^catalog (serve|migrate|import|follow|demo|usage|\w+ \w+)/.exec(text)?.[1] ?? assert.fail(text);
      const { code, stdout } = await runProgram([...command.split(' '), '--help'], {});
      assert.equal(code, 0, text);
      for (const option of text.match(/--[a-z-]+/g) ?? []) assert.ok(stdout.includes(option), `${text}: ${option}`);
    }
  });

  describe('first calls', () => {
    let service: TestService;
    let key: string;

    before(async () => {
      service = await startService();
      await service.db('api_keys').delete();
      await service.db('developers').delete();
      key =
        (await prepareDemo(service.db, fileURLToPath(ROOT).replace(/\/$/, ''))) ?? assert.fail('no demo key was made');
    });

    after(() => service.stop());

    it('get the answers that are shown', async () => {
      const calls = [...readme.matchAll(/```sh\ncurl (.*)http:\/\/127\.0\.0\.1:8080(\S+)\n```\n\n```json\n(.+)\n```/g)];
      assert.equal(calls.length, 4);
      for (const [, options = '', path = '', shown = ''] of calls) {
        const header = /^-H "Authorization: Bearer \$KEY" $/.test(options) ? { authorization: `Bearer ${key}` } : {};
        assert.ok(options === '' || 'authorization' in header, options);
        const { json } = await send(service.url, path, { headers: header });
        assert.deepEqual(withoutWhatVaries(json), withoutWhatVaries(JSON.parse(shown)), path);
      }
    });

    it('include a loop that follows the changes', async () => {
      const program = /```js\n([\s\S]+?)```/.exec(readme)?.[1] ?? assert.fail('no program');
      const child = spawn(
        process.execPath,
        ['--input-type=module', '--eval', program.replace('http://127.0.0.1:8080', service.url)],
        { env: { KEY: key }, stdio: ['ignore', 'pipe', 'inherit'] },
      );
      let printed = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        printed += text;
      });
      assert.deepEqual(await once(child, 'close'), [0, null]);
      const ids = printed
        .trimEnd()
        .split('\n')
        .map((line) => line.split(' ')[1]);
      assert.deepEqual(ids, await service.db('titles').orderBy('updated_at').pluck('svc_id'));
      assert.equal(ids.length, 360);
    });
  });
});
