import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { GUIDES, readGuide, ROOT } from '../support/guides.js';

const FOLDER = new URL('.deploy/drills/', ROOT);

const SCRIPTS = readdirSync(FOLDER, { encoding: 'utf8', recursive: true }).filter((name) => name.endsWith('.sh'));

/** Those in `lib/` are sourced by the others. */
const DRILLS = SCRIPTS.filter((name) => !name.startsWith('lib/')).map((name) => name.slice(0, -'.sh'.length));

describe('the drills', () => {
  it('every drill is a valid script', () => {
    for (const name of SCRIPTS) {
      const { status, stderr } = spawnSync('bash', ['-n', fileURLToPath(new URL(name, FOLDER))], { encoding: 'utf8' });
      assert.equal(status, 0, stderr);
    }
    const { status, stderr } = spawnSync(process.execPath, ['--check', fileURLToPath(new URL('watch.mjs', FOLDER))]);
    assert.equal(status, 0, String(stderr));
  });

  it('every drill is in the help of make and in a guide, and a drill in a guide exists', async () => {
    const makefile = await readFile(new URL('Makefile', ROOT), 'utf8');
    const [help = ''] = /^drill: .*$/m.exec(makefile) ?? [];
    const guides = (await Promise.all(GUIDES.map(readGuide))).join('\n');
    const mentioned = new Set([...guides.matchAll(/DRILL=([\w-]+)/g)].map(([, drill]) => drill));
    assert.deepEqual([...mentioned].sort(), [...DRILLS].sort());
    for (const drill of DRILLS) assert.match(help, new RegExp(`\\b${drill}\\b`));
  });
});
