import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readConfig } from '../../src/config/config.js';
import { ROOT } from '../support/guides.js';
import { skipWithout } from '../support/programs/skip.js';
import { findProgram, SYSTEMD_ANALYZE } from '../support/programs/system-program.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { assertEnvironment, assertStopTime } from './environment.js';

const run = promisify(execFile);

/** The greatest exposure that systemd may find, in tenths. The network that the server needs makes 0.8 of it. */
const MAX_EXPOSURE = 19;

describe('the systemd unit', () => {
  let unit: string;

  before(async () => {
    unit = await readFile(new URL('.deploy/catalog@.service', ROOT), 'utf8');
  });

  /** Returns all values of a directive. */
  function valuesOf(directive: string): string[] {
    return [...unit.matchAll(new RegExp(`^${directive}=(.*)$`, 'gm'))].map(([, value = '']) => value);
  }

  it('the unit sets only settings of the service, its addresses by its name and secrets from credentials', () => {
    const settings = Object.fromEntries(valuesOf('Environment').map((text) => text.split('='))) as Record<
      string,
      string
    >;
    assertEnvironment(Object.keys(settings));
    const { PORT, METRICS_ADDRESS, ...secrets } = settings;
    const { port, metricsAddress } = readConfig({
      PORT: PORT?.replace('%i', '8081'),
      METRICS_ADDRESS: METRICS_ADDRESS?.replace('%i', '8081'),
    });
    assert.deepEqual([port, metricsAddress?.port], [8081, 18081]);
    const credentials = valuesOf('LoadCredential').map((text) => `%d/${text.split(':')[0] ?? ''}`);
    assert.deepEqual(Object.values(secrets), credentials);
  });

  it('the unit leaves the server the time to drain', () => {
    assertStopTime(Number(valuesOf('TimeoutStopSec')[0]), undefined);
  });

  it('systemd accepts each unit without a warning, and finds it well confined', async function () {
    const analyze = findProgram(SYSTEMD_ANALYZE) ?? skipWithout('systemd-analyze', this);
    const folder = await temporaryFolder();
    const names = (await readdir(new URL('.deploy', ROOT))).filter((name) => name.endsWith('.service'));
    assert.ok(names.length > 1);
    for (const name of names) {
      const text = await readFile(new URL(`.deploy/${name}`, ROOT), 'utf8');
      const file = join(folder, name);
      // Node.js lies elsewhere on some machines.
      await writeFile(file, text.replaceAll('/usr/bin/node', process.execPath));
      const verified = await run(analyze, ['verify', '--man=no', file]);
      assert.deepEqual(verified, { stdout: '', stderr: '' });
      await run(analyze, ['security', '--offline=true', `--threshold=${MAX_EXPOSURE}`, file]);
      const variables = [...text.matchAll(/^Environment=([A-Z_]+)=/gm)].map(([, variable = '']) => variable);
      assertEnvironment(variables);
    }
  });
});
