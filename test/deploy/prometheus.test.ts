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
  it('every alert links to a section of the runbook on the operator pages', async () => {
    assert.ok(operatorPages().includes('/guides/runbook'));
    const alerts = await readAlerts();
    assert.ok(alerts.length > 8);
    const headings = (await readGuide('runbook')).matchAll(/^## (.+)$/gm);
    const sections = [...headings].map(([, heading = '']) => heading.toLowerCase().replace(/[^a-z0-9 -]/g, ''));
    for (const { alert, annotations } of alerts) {
      const { pathname, hash } = new URL(annotations.runbook_url);
      assert.equal(pathname, '/guides/runbook', alert);
      assert.ok(sections.includes(hash.slice(1).replaceAll('-', ' ')), alert);
    }
  });

  it('every alert has a case in which it fires and one in which it stays silent', async () => {
    const { tests } = load(await readFile(CASES, 'utf8')) as { tests: { name: string }[] };
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
      await run(promtool, ['check', 'rules', fileURLToPath(RULES)]);
      await run(promtool, ['test', 'rules', fileURLToPath(CASES)]);
    });

    it('every query of the dashboard is valid PromQL', async () => {
      const queries = await readDashboardQueries();
      assert.ok(queries.length > 20);
      const rules = queries.map((expr, i) => ({ record: `query_${i}`, expr }));
      const file = join(await temporaryFolder(), 'queries.json');
      // JSON is YAML too.
      await writeFile(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
      await run(promtool, ['check', 'rules', file]);
    });
  });
});
