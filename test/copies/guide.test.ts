import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parseSigningKey } from '../../src/config/parsers.js';
import { formatManifest, MANIFEST_NAME } from '../../src/copies/manifest.js';
import { parsePublicKey, requireSignature, signManifest } from '../../src/copies/signature.js';
import { readGuide } from '../support/guides.js';
import { skipWithout } from '../support/programs/skip.js';
import { findProgram, type SystemProgram } from '../support/programs/system-program.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { sampleManifest } from './sample-manifest.js';

const run = promisify(execFile);

const [OPENSSL, PYTHON] = ['openssl', 'python3'].map((name): SystemProgram => ({
  title: name,
  programs: [name],
  debianPackages: [name],
  packages: [name],
})) as [SystemProgram, SystemProgram];

describe('the guide to publishing copies', () => {
  let guide: string;

  before(async () => {
    guide = await readGuide('publish-copies');
  });

  /** @returns the blocks of one language that have a text */
  function blocks(language: string, text: string): string[] {
    const found = [...guide.matchAll(new RegExp(`\`\`\`${language}\n(.+?)\`\`\``, 'gs'))].map(
      ([, block = '']) => block,
    );
    const chosen = found.filter((block) => block.includes(text));
    assert.ok(chosen.length > 0, text);
    return chosen;
  }

  it('the commands of the guide make a pair of keys, and check a signature by hand', async function () {
    if (findProgram(OPENSSL) === undefined) skipWithout('openssl', this);
    const folder = await temporaryFolder();
    const inFolder = (command: string) => run('sh', ['-ec', command], { cwd: folder });
    const read = (name: string): Promise<string> => readFile(join(folder, name), 'utf8');
    await inFolder(blocks('sh', 'openssl genpkey').join(''));
    const signed = signManifest(sampleManifest(), parseSigningKey(await read('copies.key')));
    requireSignature(signed, parsePublicKey(await read('copies.pub')));
    if (findProgram(PYTHON) === undefined) skipWithout('python3', this);
    await writeFile(join(folder, MANIFEST_NAME), formatManifest(signed));
    const check = blocks('sh', 'openssl pkeyutl').join('');
    assert.match((await inFolder(check)).stdout, /Verified Successfully/);
    await writeFile(join(folder, MANIFEST_NAME), formatManifest({ ...signed, position: 1 }));
    await assert.rejects(inFolder(check), { stdout: /Verification Failure/ });
  });
});
