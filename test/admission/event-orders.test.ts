import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createAdmission, type Admit } from '../../src/admission/admission.js';
import { CallerCache } from '../../src/admission/caller-cache.js';
import type { Caller } from '../../src/admission/callers.js';
import type { ConditionalCharge, Decision, Limiter, QuotaRequest } from '../../src/admission/charge/limiter.js';
import { announceIn, beginChange, type EndChange } from '../../src/admission/invalidate-callers.js';
import { createVersion, versionKey } from '../../src/admission/versions.js';
import { generateApiKey } from '../../src/keys/api-key.js';
import { Fence } from '../../src/platform/postgres/fence.js';
import type { RedisLink } from '../../src/platform/redis/link.js';
import { hashOf } from '../support/keys/key-hash.js';

const CALLER: Caller = {
  keyId: 0,
  keyPrefix: 'svc_00000000',
  developerId: 1,
  projectName: 'P',
  attributionRequired: false,
  plan: { id: 'free', name: '0', requestsPerMinute: 60, requestsPerDay: 100, commercialUse: false },
  expiresAt: Infinity,
};

/** The developer of each key. Changes of keys end and restore the first one. */
const DEVELOPERS = [1, 1, 2];

describe('admission in whatever order things happen', () => {
  const KEYS = DEVELOPERS.map(() => hashOf(generateApiKey().key));
  const CHANGES = [
    'a key, by command',
    'a key, in plain SQL',
    'the plan, by command',
    'the plan, in plain SQL',
    'a version is evicted',
    'Redis is emptied',
    'Redis returns with older data',
    'announcements are lost',
    'Redis is slow',
  ] as const;

  /** The database and Redis in memory: each query and each reply takes as long as the scheduler wants. */
  class World {
    /** After each change: whether the first key is valid, and the name of the plan of all keys. */
    readonly states = [{ isValid: true, plan: '0' }];
    /** The last change that was reported as done, or announced. */
    reported = 0;
    readonly admit: Admit;
    readonly #beginChange: () => EndChange;
    #versions = new Map([1, 2].map((id) => [versionKey(id), `first of ${id}`]));
    readonly #oldVersions = new Map(this.#versions);
    #session = 1;
    #isSlow = false;

    constructor(
      readonly cache: CallerCache,
      readonly pass: () => Promise<void>,
    ) {
      const client = {
        // The script that sets a version, of a database that was never replaced.
        eval: async (_script: string, _count: number, key: string, value: string) => {
          this.#versions.set(key, value);
          return value;
        },
        // Creates a version.
        set: async (key: string, value: string) => (this.#versions.has(key) ? null : this.#versions.set(key, value)),
      };
      const redis = {
        run: (_key: string, command: (it: typeof client, session: number) => Promise<unknown>) => {
          const session = this.#session;
          return this.#roundTrip(() => command(client, session));
        },
      } as unknown as RedisLink;
      const charge = async ({ developerId }: QuotaRequest): Promise<Decision> => {
        const session = this.#session;
        const token = await this.#roundTrip(async () => this.#versions.get(versionKey(developerId)) ?? '');
        const isLost = this.#isSlow || session !== this.#session;
        return { kind: 'charged', quotas: [], version: isLost ? undefined : { token, session } };
      };
      const limiter: Pick<Limiter, 'charge' | 'chargeUnder'> = {
        charge,
        chargeUnder: async (required, request): Promise<ConditionalCharge> => {
          const { session } = this;
          const { kind, quotas, version } = await charge(request);
          const isConfirmed = version?.token === required.token && session === required.session;
          return isConfirmed ? { kind, quotas, version: undefined } : { kind: 'unconfirmed', version };
        },
      };
      cache.close();
      cache.open();
      for (const id of [1, 2]) cache.learn(id, { token: `first of ${id}`, session: 1 });
      const fence = new Fence();
      this.#beginChange = () => beginChange(announceIn(redis), fence);
      this.admit = createAdmission({
        loadCaller: (hash) =>
          this.#roundTrip(async () => {
            const keyId = KEYS.indexOf(hash);
            const { isValid, plan } = this.states.at(-1) ?? assert.fail();
            if (keyId === 0 && !isValid) return undefined;
            return {
              ...CALLER,
              keyId,
              developerId: DEVELOPERS[keyId] ?? assert.fail(),
              plan: { ...CALLER.plan, name: plan },
            };
          }),
        fence,
        limiter: limiter as Limiter,
        cache,
        createVersion: (id) => createVersion(redis, fence, id),
      });
    }

    get session(): number {
      return this.#session;
    }

    async #roundTrip<T>(act: () => Promise<T>): Promise<T> {
      await this.pass();
      const result = await act();
      await this.pass();
      return result;
    }

    /** The first four change what a request must observe once that is reported. */
    async happen(what: (typeof CHANGES)[number]): Promise<void> {
      await this.pass();
      if (what === 'a version is evicted') this.#versions.delete(versionKey(1));
      if (what === 'Redis is emptied') this.#versions.clear();
      if (what === 'Redis returns with older data') {
        this.#session += 1;
        this.#versions = new Map(this.#oldVersions);
      }
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
      if (!what.startsWith('a key') && !what.startsWith('the plan')) return;
      const endChange = this.#beginChange();
      const { isValid, plan } = this.states.at(-1) ?? assert.fail();
      const isOfPlan = what.startsWith('the plan');
      const change = this.states.push(
        isOfPlan ? { isValid, plan: `${this.states.length}` } : { isValid: !isValid, plan },
      );
      await this.pass();
      if (what.endsWith('by command')) await endChange(isOfPlan ? [1, 2] : [1]);
      else if (isOfPlan) this.cache.clear();
      else this.cache.drop(1);
      this.reported = change - 1;
    }

    /** Uses a key, and compares the result with what the key was from the last change that was reported on. */
    async request(key: number): Promise<void> {
      await this.pass();
      const { reported } = this;
      const admission = await this.admit(KEYS[key] ?? assert.fail());
      const isKnown = admission.kind !== 'unknown_key';
      if (isKnown) assert.equal(admission.caller.keyId, key);
      const found = isKnown ? admission.caller.plan.name : 'unknown';
      const possible = this.states
        .slice(reported)
        .map(({ isValid, plan }) => (key === 0 && !isValid ? 'unknown' : plan));
      assert.ok(possible.includes(found), `${found}, and not one of ${possible.join()}`);
    }
  }

  it('each request gets its own caller, valid as of a moment since the last change that was reported', async () => {
    // Its memory takes time to set up.
    const cache = new CallerCache();
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(fc.array(fc.constantFrom(0, 0, 1, 2), { minLength: 1, maxLength: 3 }), { minLength: 3, maxLength: 4 }),
        fc.array(fc.constantFrom(...CHANGES), { minLength: 1, maxLength: 3 }),
        fc.constantFrom([1], [0, 1, 2]),
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
      { numRuns: 2_000 },
    );
    assert.ok(cache.lookupCounts.hit > 100);
  });
});
