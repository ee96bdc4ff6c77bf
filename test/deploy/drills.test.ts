import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ROOT } from '../support/guides.js';

const FOLDER = new URL('.deploy/drills/', ROOT);

const SCRIPTS = readdirSync(FOLDER, { encoding: 'utf8', recursive: true }).filter((name) => name.endsWith('.sh'));

describe('the drills', () => {
  it('every drill is a valid script', () => {
    for (const name of SCRIPTS) {
      const { status, stderr } = spawnSync('bash', ['-n', fileURLToPath(new URL(name, FOLDER))], { encoding: 'utf8' });
      assert.equal(status, 0, stderr);
    }
    const { status, stderr } = spawnSync(process.execPath, ['--check', fileURLToPath(new URL('watch.mjs', FOLDER))]);
    assert.equal(status, 0, String(stderr));
  });
});
