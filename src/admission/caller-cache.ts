import { isDeepStrictEqual } from 'node:util';
import { LRUCache } from 'lru-cache';
import type { Plan } from '../limits/plans.js';
import { STEADY_CLOCK } from '../platform/time/steady-clock.js';
import type { Caller } from './callers.js';
import type { Version } from './versions.js';

/** The most records kept, and the most versions. */
const MAX_RECORDS = 50_000;

/**
 * How long a look at the announcements keeps the cache open, from when the look began, in milliseconds. Looks begin every
 * second, so three of them must fail or be slow before the cache closes.
 *
 * The lease bounds what a renewed version does not reach. Once whoever ends a key has waited for a lease since the commit,
 * no server uses a record from before it:
 *
 * - Commit: the wait begins after it, on a clock that does not run ahead of time.
 * - Look: one that begins after the commit finds its announcement, and drops the developer's records before it extends
 *   the lease. A look counts from its beginning, since it may miss what is committed while it runs.
 * - Lease: a record is used only while the last completed look began less than a lease ago. After the wait, that look
 *   began after the commit. What it dropped does not return: {@link CallerCache.keep} refuses records whose reading began
 *   earlier.
 * - Clock: checked at each use, on a clock that does not fall behind while the process is frozen or the machine sleeps.
 */
export const LEASE_MS = 3_000;

/** A version, and when this process has learned it: after that many other versions. */
interface LearnedVersion extends Version {
  readonly order: number;
}

/** A caller as the database had it under a version of its developer. */
export interface CachedCaller extends Caller {
  readonly version: Version;
}

/**
 * Records of callers, by the hash of their key, each read under a version of its developer. It keeps none without one.
 *
 * It is open while a {@link LEASE_MS lease} from a look at the announcements runs: only they report a change that renews
 * no version, such as a plain UPDATE, or that of a command that was killed half-way or cannot reach Redis.
 */
export class CallerCache {
  readonly #records = new LRUCache<string, CachedCaller>({ max: MAX_RECORDS });
  /** By developer. A record is void unless it was read under the very object that is here. */
  readonly #versions = new LRUCache<number, LearnedVersion>({ max: MAX_RECORDS });
  /** By id. Most callers share a few. */
  readonly #plans = new Map<string, Plan>();
  #learned = 0;
  #openUntil = -Infinity;
  /** Results of lookups since the process began. Stale: there was a record, but its version could not be confirmed. */
  readonly lookupCounts = { hit: 0, miss: 0, stale: 0 };

  /** @param clock - the clock that `expiresAt` and the lease are measured on */
  constructor(private readonly clock = STEADY_CLOCK) {}

  get size(): number {
    return this.#records.size;
  }

  get isOpen(): boolean {
    return this.clock.now() < this.#openUntil;
  }

  /** How many versions were learned so far, for {@link keep}. */
  get learned(): number {
    return this.#learned;
  }

  /** @returns undefined if there is no valid record, or if its key may have expired: then only the database can decide */
  get(hash: string): CachedCaller | undefined {
    const record = this.#records.get(hash);
    if (record === undefined) return undefined;
    const { expiresAt, developerId } = record;
    const now = this.clock.now();
    if (now >= this.#openUntil) return undefined;
    if (expiresAt > now && this.#versions.get(developerId) === record.version) return record;
    this.#records.delete(hash);
    return undefined;
  }

  /**
   * Keeps a record under the version of its developer.
   *
   * @param learned - {@link learned} before the record was read: a version that was learned since does not count, for it
   *   may be that of a change that the record lacks
   */
  keep(learned: number, hash: string, caller: Caller): void {
    const version = this.#versions.get(caller.developerId);
    if (version === undefined || version.order > learned) return;
    // A copy: texts that are slices of the database's answer would keep all of it in memory.
    const copy = structuredClone(caller);
    const { keyId, keyPrefix, developerId, projectName, attributionRequired, expiresAt } = copy;
    const plan = this.#shared(copy.plan);
    // One object of one shape, spelled out: a spread would take twice the memory.
    const record = { keyId, keyPrefix, developerId, projectName, attributionRequired, plan, expiresAt, version };
    this.#records.set(hash, record);
  }

  /** @returns the same object as before for a plan that has not changed */
  #shared(plan: Plan): Plan {
    const known = this.#plans.get(plan.id);
    if (known !== undefined && isDeepStrictEqual(known, plan)) return known;
    this.#plans.set(plan.id, plan);
    return plan;
  }

  /** Takes note of the version of a developer that Redis holds, or has held at some time before. */
  learn(developerId: number, { token, session }: Version): void {
    const known = this.#versions.get(developerId);
    if (known?.token === token && known.session === session) return;
    this.#learned += 1;
    if (token === '') this.#versions.delete(developerId);
    else this.#versions.set(developerId, { token, session, order: this.#learned });
  }

  /**
   * Takes note of a completed look at the announcements: drops what was changed, and opens the cache for a lease.
   *
   * @param changed - the developers; 0 for all
   * @param beganAt - on the clock of this cache
   */
  looked(changed: readonly number[], beganAt: number): void {
    if (changed.includes(0)) this.clear();
    for (const id of changed) this.#versions.delete(id);
    this.#openUntil = beganAt + LEASE_MS;
  }

  /** Drops all records. */
  clear(): void {
    this.#versions.clear();
    this.#records.clear();
  }
}
