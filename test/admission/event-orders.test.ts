import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Knex } from 'knex';
import { createAdmission, type Admit } from '../../src/admission/admission.js';
import { CallerCache } from '../../src/admission/caller-cache.js';
import type { Caller } from '../../src/admission/callers.js';
import type { ConditionalCharge, Decision, Limiter, QuotaRequest } from '../../src/admission/charge/limiter.js';
import { changeCallers, type ChangeCallers, type Waiting } from '../../src/admission/change-callers.js';
import { createVersion, versionKey } from '../../src/admission/versions.js';
import { generateApiKey } from '../../src/keys/api-key.js';
import { Fence } from '../../src/platform/postgres/fence.js';
import { RedisUnavailable, type RedisLink } from '../../src/platform/redis/link.js';
import { SteadyClock } from '../../src/platform/time/steady-clock.js';
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

/** How long each step takes, in milliseconds: a lease is some of them. */
const STEP_MS = 75;

/** A change of the first key, or of the plan of all of them, and how it is made. */
interface Change {
  readonly of: 'key' | 'plan';
  readonly by:
    | 'a process with Redis'
    | 'a process that has lost Redis'
    | 'a process without Redis'
    | 'a process that dies';
}

const CHANGES: readonly Change[] = (['key', 'plan'] as const).flatMap((of) =>
  (
    ['a process with Redis', 'a process that has lost Redis', 'a process without Redis', 'a process that dies'] as const
  ).map((by) => ({ of, by })),
);

const OTHER_EVENTS = [
  'the last change is repeated',
  'a version is evicted',
  'Redis is emptied',
  'Redis returns with older data',
  'looks begin on another connection',
  'Redis is slow',
] as const;

type Happening = Change | (typeof OTHER_EVENTS)[number];

describe('admission in whatever order things happen', () => {
  const KEYS = DEVELOPERS.map(() => hashOf(generateApiKey().key));
  let time = 0;
  const clock = new SteadyClock(
    () => time,
    () => time,
  );

  /** The database and Redis in memory: each query and each reply takes as long as the scheduler wants. */
  class World {
    /** After each change: what it was of, whether the first key is valid, and the name of the plan of all keys. */
    readonly states: { readonly of: Change['of']; readonly isValid: boolean; readonly plan: string }[] = [
      { of: 'plan', isValid: true, plan: '0' },
    ];
    /** The last change that was reported as done. */
    reported = 0;
    readonly admit: Admit;
    readonly #changes: Readonly<Record<Exclude<Change['by'], 'a process that dies'>, ChangeCallers>>;
    #versions = new Map([1, 2].map((id) => [versionKey(id), `first of ${id}`]));
    readonly #oldVersions = new Map(this.#versions);
    #session = 1;
    #isSlow = false;
    /** The changes that the looks have found on their connection; undefined before its first look. */
    #seen: number | undefined;
    #connection = 1;

    constructor(
      readonly fence: Fence,
      readonly cache: CallerCache,
      readonly step: () => Promise<void>,
    ) {
      const client = {
        // The script that renews a version, of a database that was never replaced.
        eval: async (_script: string, _count: number, key: string, value: string) => {
          if (this.#versions.has(key)) this.#versions.set(key, value);
          return value;
        },
        // Creates a version.
        set: async (key: string, value: string) => {
          if (this.#versions.has(key)) return null;
          this.#versions.set(key, value);
          return 'OK';
        },
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
          const session = this.#session;
          const { kind, quotas, version } = await charge(request);
          const isConfirmed = version?.token === required.token && session === required.session;
          return isConfirmed ? { kind, quotas, version: undefined } : { kind: 'unconfirmed', version };
        },
      };
      cache.apply({ kind: 'look', changed: [0], beganAt: time });
      for (const developerId of [1, 2]) {
        cache.apply({ kind: 'version', developerId, version: { token: `first of ${developerId}`, session: 1 } });
      }
      const lost = { run: () => Promise.reject(new RedisUnavailable('lost')) } as unknown as RedisLink;
      // It cannot be asked whether a server has a cache, so one may.
      const db = {} as Knex;
      const waiting: Waiting = {
        now: () => time,
        sleep: async (ms) => {
          const until = time + ms;
          while (time < until) await this.step();
        },
      };
      const changesOf = (link: RedisLink | undefined): ChangeCallers =>
        changeCallers({ db, fence, redis: link }, waiting);
      this.#changes = {
        'a process with Redis': changesOf(redis),
        'a process that has lost Redis': changesOf(lost),
        'a process without Redis': changesOf(undefined),
      };
      this.admit = createAdmission({
        loadCaller: (hash) =>
          this.#roundTrip(async () => {
            const keyId = KEYS.indexOf(hash);
            const { isValid, plan } = this.states.at(-1) ?? assert.fail();
            if (keyId === 0 && !isValid) return { kind: 'unknown_key' };
            const developerId = DEVELOPERS[keyId] ?? assert.fail();
            const caller = { ...CALLER, keyId, developerId, plan: { ...CALLER.plan, name: plan } };
            return { kind: 'caller', caller };
          }),
        limiter: limiter as Limiter,
        cache,
        failedKeys: { unknown: 0, revoked: 0, expired: 0, suspended: 0 },
        createVersion: (id) => createVersion(redis, fence, id),
      });
    }

    async #roundTrip<T>(act: () => Promise<T>): Promise<T> {
      await this.step();
      const result = await act();
      await this.step();
      return result;
    }

    /** Looks at the announcements for as long as the world lasts. @param waits - before and after a look reads, in steps */
    async look(waits: readonly number[]): Promise<never> {
      const stall = async (i: number): Promise<void> => {
        for (let steps = waits[i % waits.length] ?? 0; steps > 0; steps -= 1) await this.step();
      };
      for (let i = 0; ; i += 2) {
        const [connection, seen, beganAt] = [this.#connection, this.#seen, time];
        await stall(i);
        const found = await this.#roundTrip(async () => this.states.length);
        await stall(i + 1);
        if (connection !== this.#connection) continue;
        this.#seen = found;
        const changed = this.states.slice(seen, found).map(({ of }) => (of === 'key' ? 1 : 0));
        this.cache.apply({ kind: 'look', changed: seen === undefined ? [0] : changed, beganAt });
      }
    }

    async happen(what: Happening): Promise<void> {
      await this.step();
      if (typeof what === 'object') await this.#change(what.by, what.of);
      if (what === 'the last change is repeated') await this.#change('a process with Redis');
      if (what === 'a version is evicted') this.#versions.delete(versionKey(1));
      if (what === 'Redis is emptied') this.#versions.clear();
      if (what === 'Redis returns with older data') {
        this.#session += 1;
        this.#versions = new Map(this.#oldVersions);
      }
      if (what === 'looks begin on another connection') {
        this.#connection += 1;
        this.#seen = undefined;
      }
      if (what === 'Redis is slow') {
        this.#isSlow = true;
        await this.step();
        this.#isSlow = false;
      }
    }

    /** Makes a change, and takes note of its report. @param of - undefined for the last change once more */
    async #change(by: Change['by'], of?: Change['of']): Promise<void> {
      const commit = async (): Promise<number> => {
        await this.step();
        const { isValid, plan } = this.states.at(-1) ?? assert.fail();
        if (of === 'key') this.states.push({ of, isValid: !isValid, plan });
        if (of === 'plan') this.states.push({ of, isValid, plan: `${this.states.length}` });
        return this.states.length - 1;
      };
      if (by === 'a process that dies') {
        await commit();
        return;
      }
      const made = await this.#changes[by](commit, (state) => (this.states[state]?.of === 'key' ? [1] : [1, 2]));
      this.reported = Math.max(this.reported, made);
    }

    /** Uses a key, and compares the result with what the key was from the last change that was reported on. */
    async request(key: number): Promise<void> {
      await this.step();
      const { reported } = this;
      const admission = await this.admit(KEYS[key] ?? assert.fail());
      const caller = 'caller' in admission ? admission.caller : undefined;
      if (caller !== undefined) assert.equal(caller.keyId, key);
      const found = caller?.plan.name ?? 'unknown';
      const possible = this.states
        .slice(reported)
        .map(({ isValid, plan }) => (key === 0 && !isValid ? 'unknown' : plan));
      assert.ok(possible.includes(found), `${found}, and not one of ${possible.join()}`);
    }
  }

  it('each request gets its own caller, valid as of a moment since the last change that was reported', async () => {
    // Its memory takes time to set up.
    const fence = new Fence();
    const cache = new CallerCache(fence, clock);
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(fc.array(fc.constantFrom(0, 0, 1, 2), { minLength: 1, maxLength: 3 }), { minLength: 3, maxLength: 4 }),
        fc.array(fc.constantFrom<Happening>(...CHANGES, ...OTHER_EVENTS), { minLength: 1, maxLength: 3 }),
        fc.constantFrom([1], [0, 1, 2]),
        fc.array(fc.constantFrom(0, 0, 10, 30), { minLength: 4, maxLength: 4 }),
        async (scheduler, clients, happenings, cached, waits) => {
          const world = new World(fence, cache, () => {
            time += STEP_MS;
            return scheduler.schedule(Promise.resolve());
          });
          const inTurn = async <T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> => {
            for (const item of items) await act(item);
          };
          void world.look(waits);
          await scheduler.waitFor(inTurn(cached, (key) => world.request(key)));
          await scheduler.waitFor(
            Promise.all([
              inTurn(happenings, async (what) => {
                await world.happen(what);
                await world.request(0);
              }),
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
