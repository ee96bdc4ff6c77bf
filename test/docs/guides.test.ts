import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { ERROR_CODES } from '../../src/errors.js';
import { document } from '../contract/document/document.js';
import { startDemoService } from '../support/catalog/demo-service.js';
import { GUIDES, readGuide, readReadme, ROOT } from '../support/guides.js';
import { programCommands, runCommand } from '../support/programs/command.js';
import { send } from '../support/request.js';

/** Replaces what differs from one run to the next. */
function withoutWhatVaries(json: unknown): unknown {
  return JSON.parse(
    JSON.stringify(json)
      .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z/g, '(time)')
      .replace(/svc_\w{8}/g, '(key)')
      .replace(/localhost:\d+/g, 'localhost')
      .replace(/"request_id":"[^"]+"/g, '"request_id":"(id)"'),
  );
}

describe('the guides', () => {
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

  it('the newest version of the contract is the one that the guide to changes lists first', async () => {
    const [, newest] = /^\| (\d+\.\d+\.\d+) /m.exec(await readGuide('changes')) ?? [];
    assert.equal(newest, (document.info as { version: string }).version);
  });

  it('the guide to errors has the status and title of each code', async () => {
    const rows = (await readGuide('calling-the-api')).matchAll(/^\| `(\w+)` *\| (\d+) *\| ([^|]+?) *\|/gm);
    const listed = Array.from(rows, ([, code, status, title]) => [code, { status: Number(status), title }] as const);
    assert.deepEqual(Object.fromEntries(listed), ERROR_CODES);
  });

  it('the first calls of the README get the answers that it shows', async () => {
    const { service, key } = await startDemoService();
    try {
      const calls = [
        ...(await readReadme()).matchAll(/```sh\ncurl (.*)http:\/\/localhost:8080(\S+)\n```\n\n```json\n(.+)\n```/g),
      ];
      assert.equal(calls.length, 4);
      for (const [, options = '', path = '', shown = ''] of calls) {
        const header = /^-H "Authorization: Bearer \$CATALOG_API_KEY" $/.test(options)
          ? { authorization: `Bearer ${key}` }
          : {};
        assert.ok(options === '' || 'authorization' in header, options);
        const { json } = await send(service.url, path, { headers: header });
        assert.deepEqual(withoutWhatVaries(json), withoutWhatVaries(JSON.parse(shown)), path);
      }
    } finally {
      await service.stop();
    }
  });
});
