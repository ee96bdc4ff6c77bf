import assert from 'node:assert/strict';
import { CloseStack } from '../../../src/platform/process/close-stack.js';

describe('the open parts of a program', () => {
  it('open parts are closed once, in the reverse order, one after the other', async () => {
    const closed: string[] = [];
    const parts = new CloseStack((error) => assert.fail(String(error)));
    for (const name of ['database', 'redis', 'server']) {
      assert.equal(
        parts.add(name, async () => {
          closed.push(`${name} begins`);
          await new Promise(setImmediate);
          closed.push(`${name} ends`);
        }),
        name,
      );
    }
    await parts.close();
    await parts.close();
    assert.deepEqual(closed, [
      'server begins',
      'server ends',
      'redis begins',
      'redis ends',
      'database begins',
      'database ends',
    ]);
  });

  it('the other parts are closed although one fails to close, which is reported', async () => {
    const closed: string[] = [];
    const failures: unknown[] = [];
    const parts = new CloseStack((error) => failures.push(error));
    parts.add('database', () => closed.push('database'));
    parts.add('redis', () => {
      throw new Error('at once');
    });
    parts.add('server', () => Promise.reject(new Error('later')));
    await parts.close();
    assert.deepEqual([closed, failures.map(String)], [['database'], ['Error: later', 'Error: at once']]);
  });
});
