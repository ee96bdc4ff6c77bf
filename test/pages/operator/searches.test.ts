import assert from 'node:assert/strict';
import { eventually } from '../../support/eventually.js';
import { signInOperator } from '../../support/http/operator.js';
import type { Visitor } from '../../support/http/visitor.js';
import { testWorld } from '../../support/world.js';

/** What is looked for in a list of the operator pages: what finds a row, what does not, and what shows the row. */
interface Search {
  readonly path: string;
  readonly finds: string;
  readonly misses: string;
  readonly row: string;
}

describe('the lists of the operator pages', () => {
  const world = testWorld({ service: { settings: { METRICS_ADDRESS: '127.0.0.1:0' }, jobIntervalMs: 50 } });
  let operator: Visitor;

  before(async () => {
    operator = await signInOperator(world.service);
  });

  it('a list that is searched shows what matches, and nothing else', async () => {
    const developerId = await world.newDeveloper('Atlas');
    const { key } = await world.newKey({ developerId });
    const reply = await world.service.get('/api/v1/titles/nope', { headers: { 'x-api-key': key } });
    const { request_id: requestId } = reply.json as { request_id: string };
    const failures = `/developers/${developerId}/failed-requests`;
    await eventually('the failure is saved', async () => (await operator.get(failures)).text.includes(requestId));
    const searches: readonly Search[] = [
      { path: '/developers', finds: 'aTLa', misses: 'Atlantis', row: `href="/developers/${developerId}"` },
      { path: failures, finds: requestId, misses: `${requestId.slice(0, -1)}_`, row: 'title_not_found' },
    ];
    for (const { path, finds, misses, row } of searches) {
      const shows = async (query: string): Promise<boolean> => {
        const { status, text } = await operator.get(`${path}${query}`);
        assert.equal(status, 200);
        assert.match(text, /role="search"/);
        return text.includes(row);
      };
      assert.deepEqual(
        [await shows(''), await shows(`?q=${finds}`), await shows(`?q=${misses}`)],
        [true, true, false],
        path,
      );
    }
  });
});
