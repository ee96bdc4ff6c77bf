import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { load } from 'js-yaml';
import { operatorPages } from '../pages/pages.js';
import { readGuide } from '../support/guides.js';
import { skipWithout } from '../support/programs/skip.js';
import { findProgram, PROMTOOL } from '../support/programs/system-program.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { CASES, readAlerts, readDashboardQueries, RULES } from './monitoring.js';

const run = promisify(execFile);

describe('the alerts and the dashboard', () => {
  it('every alert links to a section of the runbook on the operator pages, or of the guide for mirrors', async () => {
    assert.ok(operatorPages().includes('/guides/runbook'));
    const alerts = await readAlerts();
    assert.ok(alerts.length > 0);
    const guides = new Map([
      ['/guides/runbook', await readGuide('runbook')],
      ['/docs/guides/mirroring', await readGuide('mirroring')],
    ]);
    for (const { alert, annotations } of alerts) {
      const { pathname, hash } = new URL(annotations.runbook_url);
      const headings = (guides.get(pathname) ?? assert.fail(alert)).matchAll(/^## (.+)$/gm);
      const sections = [...headings].map(([, heading = '']) => heading.toLowerCase().replace(/[^a-z0-9 -]/g, ''));
      assert.ok(sections.includes(hash.slice(1).replaceAll('-', ' ')), alert);
    }
  });

  it('every alert has a case in which it fires and one in which it stays silent', async () => {
    const files = await Promise.all(CASES.map((file) => readFile(file, 'utf8')));
    const tests = files.flatMap((text) => (load(text) as { tests: { name: string }[] }).tests);
    for (const { alert } of await readAlerts()) {
      for (const outcome of ['fires', 'stays silent']) {
        assert.ok(
          tests.some(({ name }) => name.startsWith(`${alert} ${outcome} `)),
          `${alert} ${outcome}`,
        );
      }
    }
  });

  describe('with promtool', () => {
    let promtool: string;

    before(function () {
      promtool = findProgram(PROMTOOL) ?? skipWithout('promtool', this);
    });

    it('the alerts are valid, fire in their cases, and stay silent in the others', async () => {
      await run(promtool, ['check', 'rules', ...RULES.map((file) => fileURLToPath(file))]);
      await run(promtool, ['test', 'rules', ...CASES.map((file) => fileURLToPath(file))]);
    });

    it('every query of the dashboard is valid PromQL', async () => {
      const queries = await readDashboardQueries();
      assert.ok(queries.length > 0);
      const rules = queries.map((expr, i) => ({ record: `query_${i}`, expr }));
      const file = join(await temporaryFolder(), 'queries.json');
      // JSON is YAML too.
      await writeFile(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
      await run(promtool, ['check', 'rules', file]);
    });
  });
});
