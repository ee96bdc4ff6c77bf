import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import pino from 'pino';
import { openPublishedFolder } from '../../src/copies/published.js';
import { SETTINGS } from '../../src/config/settings.js';
import { ERROR_CODES } from '../../src/errors.js';
import { CallerCache } from '../../src/admission/caller-cache.js';
import { FailedAttempts } from '../../src/limits/failed-attempts.js';
import { MirrorStatus } from '../../src/mirror/status.js';
import { createMetrics } from '../../src/service/metrics.js';
import { UsageCounter } from '../../src/usage/usage-counter.js';
import { Health } from '../../src/platform/telemetry/health.js';
import { programCommands, runCommand } from '../support/programs/command.js';
import { GUIDES, readGuide, readReadme, ROOT, tableOf } from '../support/guides.js';

describe('the guides', () => {
  it('a guide lists exactly the error codes of the service, with their statuses', async () => {
    assert.deepEqual(
      tableOf(await readGuide('calling-the-api'), 'Errors')
        .map(([code, status]) => `${code ?? ''} ${status ?? ''}`)
        .sort(),
      Object.entries(ERROR_CODES)
        .map(([code, { status }]) => `${code} ${status}`)
        .sort(),
    );
  });

  it('a guide lists exactly the settings, with their defaults', async () => {
    assert.deepEqual(
      tableOf(await readGuide('operators/configure'), 'Settings').map(([name, fallback]) => [name, fallback]),
      Object.values(SETTINGS).map(({ name, default: fallback }) => [name, fallback]),
    );
  });

  it('a guide lists exactly the settings that files can have', async () => {
    const [, text = ''] = /^## Secrets in files\n(.+?)\n## /ms.exec(await readGuide('operators/configure')) ?? [];
    assert.deepEqual(
      new Set(text.match(/[A-Z_]+_FILE/g)),
      new Set(Object.values(SETTINGS).flatMap(({ name, isSecret }) => (isSecret ? [`${name}_FILE`] : []))),
    );
  });

  it('a guide lists exactly the metrics of the service', async () => {
    const { metrics } = await createMetrics({
      packageRoot: fileURLToPath(ROOT),
      operationIds: [],
      pools: {},
      health: new Health(pino({ enabled: false }), []),
      decisions: {},
      failedAttempts: new FailedAttempts(),
      cache: new CallerCache(),
      notificationQueueUsage: () => 0,
      droppedLines: () => 0,
      usage: new UsageCounter(),
      notices: { pending: 0, givenUp: 0 },
      copies: openPublishedFolder('/srv/copies'),
    });
    const text = await metrics.text();
    const names = new Set([...text.matchAll(/^# TYPE (catalog_\w+)/gm)].map(([, name]) => name));
    const listed = tableOf(await readGuide('operators/monitor'), 'Metrics').flatMap(
      ([name = '']) => name.match(/catalog_\w+/g) ?? [],
    );
    assert.deepEqual(listed.sort(), [...names].sort());
  });

  it('a guide lists exactly the metrics of a mirror', async () => {
    const text = await new MirrorStatus().metrics.text();
    const names = [...text.matchAll(/^# TYPE (catalog_\w+)/gm)].map(([, name]) => name);
    const listed = tableOf(await readGuide('mirroring'), 'Monitor it').map(([name = '']) => name.replaceAll('`', ''));
    assert.deepEqual(listed.sort(), names.sort());
  });

  it('a guide lists the changes of this version and of every migration', async () => {
    const text = await readGuide('changes');
    const { version } = JSON.parse(await readFile(new URL('package.json', ROOT), 'utf8')) as { version: string };
    assert.equal(/^## (\d.*)$/m.exec(text)?.[1], version);
    const ranges = [...text.matchAll(/migrations? (?:is|are)\s(\d{3})(?: (?:to|and) (\d{3}))?/g)];
    for (const file of (await readdir(new URL('db/migrations', ROOT))).filter((name) => name.endsWith('.sql'))) {
      const number = file.slice(0, 3);
      assert.ok(
        ranges.some(([, first = '', last = first]) => first <= number && number <= last),
        `no version names ${file}`,
      );
    }
  });

  it('every command and option in a guide exists', async () => {
    const text = (await Promise.all([readReadme(), ...GUIDES.map(readGuide)])).join('\n');
    const commands = (await programCommands()).filter(
      ({ command }) => command.commands.length === 0 || ['stats', 'mirror'].includes(command.name()),
    );
    const first = new Set(commands.map(({ name }) => name.split(' ')[0] ?? ''));
    const mentioned = text.match(new RegExp(`catalog (?:${[...first].join('|')}) [^\`\n|]*`, 'g')) ?? [];
    assert.ok(mentioned.length > 40);
    for (const text of new Set(mentioned)) {
      // The longest of "stats" and "stats verify".
      const { name } = commands.findLast(({ name }) => `${text} `.startsWith(`catalog ${name} `)) ?? assert.fail(text);
      const { code, stdout } = await runCommand([...name.split(' '), '--help'], {});
      assert.equal(code, 0, text);
      for (const option of text.match(/--[a-z-]+/g) ?? []) assert.ok(stdout.includes(option), `${text}: ${option}`);
    }
  });

  it('every command that a file of a deployment starts exists', async () => {
    const files = (await readdir(new URL('.deploy', ROOT), { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile())
      .map((entry) => `${entry.parentPath}/${entry.name}`);
    const texts = await Promise.all(files.map((file) => readFile(file, 'utf8')));
    const started = [...texts.join('\n').matchAll(/(?:cli\.js['",]* |^ *(?:args|command): \[)(\w+)[\];\n ]/gm)];
    assert.ok(started.length > 5);
    const names = (await programCommands()).map(({ name }) => name);
    for (const [text, command = ''] of started) assert.ok(names.includes(command), text);
  });

  it('no guide, page or program starts a foreign package by npx or puts a key on a command line', async () => {
    const files = (await readdir(new URL('src', ROOT), { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile() && /\.(md|tsx?|js)$/.test(entry.name))
      .map((entry) => `${entry.parentPath}/${entry.name}`);
    assert.ok(files.length > 100);
    for (const file of [...files, ...['README.md', 'openapi.yaml'].map((name) => fileURLToPath(new URL(name, ROOT)))]) {
      const text = await readFile(file, 'utf8');
      // The warnings name the call itself, without a command.
      assert.doesNotMatch(text, /npx catalog [a-z]|CATALOG_API_KEY=|API_KEY=svc/, file);
    }
  });
});
