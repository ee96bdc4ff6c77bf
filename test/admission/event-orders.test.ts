import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createAdmission, type Admit } from '../../src/admission/admission.js';
import { CallerCache } from '../../src/admission/caller-cache.js';
import type { Caller } from '../../src/admission/callers.js';
import type { ConditionalCharge, Decision, Limiter } from '../../src/admission/charge/limiter.js';
import { setEpoch } from '../../src/admission/epoch.js';
import { announceIn, beginChange, type EndChange } from '../../src/admission/invalidate-callers.js';
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
  const CHANGES = [
    'by command',
    'in plain SQL',
    'Redis is emptied',
    'announcements are lost',
    'Redis is slow',
  ] as const;

  /** The database and Redis in memory: each query and each reply takes as long as the scheduler wants. */
  class World {
    /** Whether the first key was valid after each change; the second one always is. */
    readonly validity = [true];
    /** The last change that was reported as done, or announced. */
    reported = 0;
    readonly admit: Admit;
    readonly #beginChange: () => EndChange;
    #epoch = 'first';
    #isSlow = false;

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
        run: (_key: string, command: (it: typeof client) => Promise<unknown>) => this.#roundTrip(() => command(client)),
      } as unknown as RedisLink;
      const charge = (): Promise<Decision> =>
        this.#roundTrip(async () => ({ kind: 'charged', quotas: [], epoch: this.#epoch }));
      const limiter: Pick<Limiter, 'charge' | 'chargeUnder'> = {
        charge: async () => (this.#isSlow ? { kind: 'charged', quotas: [], epoch: undefined } : charge()),
        chargeUnder: async (epoch): Promise<ConditionalCharge> => {
          if (this.#isSlow) return { kind: 'unconfirmed', epoch: undefined };
          const decision = await charge();
          return decision.epoch === epoch ? decision : { kind: 'unconfirmed', epoch: decision.epoch ?? '' };
        },
      };
      cache.close();
      cache.open();
      cache.replaceEpoch(undefined, this.#epoch);
      const fence = new Fence();
      this.#beginChange = () => beginChange(announceIn(redis), fence);
      this.admit = createAdmission({
        loadCaller: (hash) =>
          this.#roundTrip(async () => {
            const keyId = KEYS.indexOf(hash);
            return keyId > 0 || this.validity.at(-1) === true ? { ...CALLER, keyId } : undefined;
          }),
        fence,
        limiter: limiter as Limiter,
        cache,
        createEpoch: () => void setEpoch(redis, fence, 'create'),
      });
    }

    async #roundTrip<T>(act: () => Promise<T>): Promise<T> {
      await this.pass();
      const result = await act();
      await this.pass();
      return result;
    }

    /** The first two change the first key, which a request must observe once that is reported. */
    async happen(what: (typeof CHANGES)[number]): Promise<void> {
      await this.pass();
      if (what === 'Redis is emptied') this.#epoch = '';
      if (what === 'announcements are lost') {
        this.cache.close();
        await this.pass();
        this.cache.open();
      }
      if (what === 'Redis is slow') {
        this.#isSlow = true;
        await this.pass();
        this.#isSlow = false;
      }
      if (what !== 'by command' && what !== 'in plain SQL') return;
      const endChange = this.#beginChange();
      const changes = this.validity.push(this.validity.at(-1) === false) - 1;
      await this.pass();
      if (what === 'by command') await endChange(true);
      else this.cache.clear();
      this.reported = changes;
    }

    /** Uses a key, and compares the result with what the key was from the last change that was reported on. */
    async request(key: number): Promise<void> {
      await this.pass();
      const { reported } = this;
      const admission = await this.admit(KEYS[key] ?? assert.fail());
      const isKnown = admission.kind !== 'unknown_key';
      if (isKnown) assert.equal(admission.caller.keyId, key);
      const possible = key === 0 ? this.validity.slice(reported) : [true];
      assert.ok(possible.includes(isKnown), `${admission.kind}, and not one of ${possible.join()}`);
    }
  }

  it('each request gets its own caller, valid as of a moment since the last change that was reported', async () => {
    // Its memory takes time to set up.
    const cache = new CallerCache();
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(fc.array(fc.constantFrom(0, 0, 1), { minLength: 1, maxLength: 3 }), { minLength: 3, maxLength: 4 }),
        fc.array(fc.constantFrom(...CHANGES), { minLength: 1, maxLength: 3 }),
        fc.constantFrom([1], [0, 1]),
        async (scheduler, clients, changes, cached) => {
          const world = new World(cache, () => scheduler.schedule(Promise.resolve()));
          const inTurn = async <T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> => {
            for (const item of items) await act(item);
          };
          await scheduler.waitFor(inTurn(cached, (key) => world.request(key)));
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
