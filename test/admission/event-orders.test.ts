import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Admit } from '../../src/admission/admission.js';
import { admitFromCache } from '../../src/admission/admit-from-cache.js';
import { CallerCache } from '../../src/admission/caller-cache.js';
import type { Caller } from '../../src/admission/callers.js';
import { beginChange, type EndChange } from '../../src/admission/forget-callers.js';
import type { RedisLimiter } from '../../src/admission/charge/redis-limiter.js';
import { generateApiKey } from '../../src/keys/api-key.js';
import { Fence } from '../../src/platform/postgres/fence.js';
import type { RedisLink } from '../../src/platform/redis/link.js';
import { hashOf } from '../support/keys/key-hash.js';

const CALLER: Caller = {
  keyId: 1,
  keyPrefix: 'svc_00000000',
  developerId: 1,
  projectName: 'P',
  attributionRequired: false,
  plan: { id: 'free', name: 'Free', requestsPerMinute: 60, requestsPerDay: 100, commercialUse: false },
  expiresAt: Infinity,
};

describe('admission in whatever order things happen', () => {
  const KEYS = [generateApiKey(), generateApiKey()].map(({ key }) => hashOf(key));
  const CHANGES = ['by command', 'in plain SQL', 'Redis is emptied', 'announcements are lost'] as const;

  /** The database and Redis in memory: each question and each answer takes as long as the scheduler wants. */
  class World {
    /** Whether the first key was valid after each change; the second one always is. */
    readonly validity = [true];
    /** How many of the changes have been reported as done, or were announced. */
    reported = 0;
    readonly admit: Admit;
    readonly #change: () => EndChange;
    #epoch = '';

    constructor(
      readonly cache: CallerCache,
      readonly pass: () => Promise<void>,
    ) {
      const client = {
        // The script that sets an epoch, of a database that was never replaced.
        eval: async (...[, , , epoch, , , how]: readonly string[]) => {
          if (how === 'renew' || this.#epoch === '') this.#epoch = epoch ?? '';
          return this.#epoch;
        },
      };
      const redis = {
        isUp: true,
        run: (command: (it: typeof client) => Promise<unknown>) => this.#ask(() => command(client)),
      };
      const charge = async () => {
        await this.pass();
        return { kind: 'decided', result: { quotas: [], violated: [] }, epoch: this.#epoch };
      };
      const limiter = {
        chargeAndReadEpoch: charge,
        chargeIf: async (epoch: string) => {
          const outcome = await charge();
          return outcome.epoch === epoch ? outcome : { kind: 'precondition_failed', epoch: outcome.epoch };
        },
      };
      cache.close();
      cache.open();
      const fence = new Fence();
      this.#change = () => beginChange(redis as unknown as RedisLink, fence);
      this.admit = admitFromCache({
        loadCaller: (hash) =>
          this.#ask(async () => {
            const keyId = KEYS.indexOf(hash);
            return keyId > 0 || this.validity.at(-1) === true ? { ...CALLER, keyId } : undefined;
          }),
        fence,
        redis: redis as unknown as RedisLink,
        limiter: limiter as unknown as RedisLimiter,
        cache,
      });
    }

    async #ask<T>(answer: () => Promise<T>): Promise<T> {
      await this.pass();
      const answered = await answer();
      await this.pass();
      return answered;
    }

    /** Something happens. The first two change the first key, which a request must observe once that is reported. */
    async happen(what: (typeof CHANGES)[number]): Promise<void> {
      await this.pass();
      if (what === 'Redis is emptied') this.#epoch = '';
      if (what === 'announcements are lost') {
        this.cache.close();
        await this.pass();
        this.cache.open();
      }
      if (what !== 'by command' && what !== 'in plain SQL') return;
      const endChange = this.#change();
      const changes = this.validity.push(this.validity.at(-1) === false) - 1;
      await this.pass();
      if (what === 'by command') await endChange(true);
      else this.cache.drop();
      this.reported = changes;
    }

    /** Asks for a key, and compares the answer with what the key was from the last change that was reported on. */
    async request(key: number): Promise<void> {
      await this.pass();
      const { reported } = this;
      const admission = await this.admit(KEYS[key] ?? assert.fail());
      if (admission.kind === 'known') assert.equal(admission.caller.keyId, key);
      const possible = key === 0 ? this.validity.slice(reported) : [true];
      assert.ok(possible.includes(admission.kind === 'known'), `${admission.kind}, and not one of ${possible.join()}`);
    }
  }

  it('gives each request its own caller, valid as of a moment since the last change that was reported', async () => {
    // Its memory takes time to set up.
    const cache = new CallerCache();
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(fc.array(fc.constantFrom(0, 0, 1), { minLength: 1, maxLength: 3 }), { minLength: 3, maxLength: 4 }),
        fc.array(fc.constantFrom(...CHANGES), { minLength: 1, maxLength: 3 }),
        async (scheduler, clients, changes) => {
          const world = new World(cache, () => scheduler.schedule(Promise.resolve()));
          const inTurn = async <T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> => {
            for (const item of items) await act(item);
          };
          // The second key is cached.
          await scheduler.waitFor(inTurn([1, 1], (key) => world.request(key)));
          await scheduler.waitFor(
            Promise.all([
              inTurn(changes, (what) => world.happen(what)),
              ...clients.map((keys) => inTurn(keys, (key) => world.request(key))),
            ]),
          );
        },
      ),
      { numRuns: 1_500 },
    );
    assert.ok(cache.lookupCounts.hit > 100);
  });
});
