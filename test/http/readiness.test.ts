import assert from 'node:assert/strict';
import { CONSEQUENCES } from '../../src/platform/health.js';
import { startService, type TestService } from '../support/service.js';
import { assertReadiness } from '../outages/server-state.js';
import { readGuide } from '../support/guides.js';
import { assertProblem } from '../support/problem.js';
import { send } from '../support/request.js';

// What is said while something is lost is held against the real thing in test/outages and test/replica.
describe('readiness', () => {
  let service: TestService;
  let isStopping = false;

  before(async () => {
    service = await startService({ isStopping: () => isStopping });
  });

  after(() => service.stop());

  it('is given up when the service shuts down, and says so', async () => {
    await assertReadiness(service.url, ['database'], []);
    isStopping = true;
    const detail = 'The service is shutting down: it finishes what is in flight and accepts nothing more.';
    assertProblem(await send(service.url, '/readyz'), 'service_unavailable', {
      detail,
      members: { reasons: [{ code: 'shutting_down', detail }], checks: { database: 'up' } },
      headers: { 'retry-after': '2', connection: 'close' },
    });
  });

  it('has each of its reasons in the operating guide', async () => {
    const guide = await readGuide('operating');
    const codes = [...Object.keys(CONSEQUENCES).map((component) => `${component}_lost`), 'shutting_down'];
    assert.deepEqual(
      codes.filter((code) => !guide.includes(`\`${code}\``)),
      [],
    );
  });
});
