import assert from 'node:assert/strict';
import { InFlight } from '../../src/admission/in-flight.js';

describe('readings in flight', () => {
  for (const [how, settle] of [
    ['succeeds', (_: unknown, resolve: () => void) => resolve()],
    ['fails', (reject: (error: Error) => void) => reject(new Error('no'))],
  ] as const) {
    it(`are found by their name until they end, and the wait for one that ${how} does not fail`, async () => {
      const inFlight = new InFlight();
      let end = (): void => undefined;
      inFlight.add('a', new Promise<void>((resolve, reject) => (end = () => settle(reject, resolve))));
      inFlight.add('b', new Promise(() => undefined));
      const reading = inFlight.get('a');
      assert.notEqual(reading, undefined);
      assert.equal(inFlight.get('c'), undefined);
      end();
      await reading;
      assert.equal(inFlight.get('a'), undefined);
      assert.notEqual(inFlight.get('b'), undefined);
    });
  }

  it('stay in flight until the first one of a name ends', async () => {
    const inFlight = new InFlight();
    inFlight.add('a', new Promise(() => undefined));
    const first = inFlight.get('a');
    const second = Promise.resolve();
    inFlight.add('a', second);
    await second;
    assert.equal(inFlight.get('a'), first);
  });
});
