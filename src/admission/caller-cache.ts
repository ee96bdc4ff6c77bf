import { isDeepStrictEqual } from 'node:util';
import { LRUCache } from 'lru-cache';
import type { Plan } from '../limits/plans.js';
import type { Fence } from '../platform/postgres/fence.js';
import { STEADY_CLOCK } from '../platform/time/steady-clock.js';
import type { Caller } from './callers.js';
import { observeTimeline, type Version } from './versions.js';

/** The most records kept, and the most versions. */
const MAX_RECORDS = 50_000;

/**
 * How long a look at the announcements keeps the cache open, from when the look began, in milliseconds. Looks begin every
 * second, so three of them must fail or be slow before the cache closes.
 *
 * The lease bounds the use of records where no version was renewed. Once a change has waited for a lease since its
 * commit, no server uses a record from before it:
 *
 * - Commit: the wait begins after it, on a clock that does not run ahead of time.
 * - Look: a look that begins after the commit finds its announcement. It drops the developer's records before it extends
 *   the lease. A look counts from its beginning, since it may miss commits while it runs.
 * - Lease: a record is used only while the last completed look began less than a lease ago. After the wait, that look
 *   began after the commit. Dropped records do not return. A {@link Reading} that began earlier keeps nothing.
 * - Clock: it is checked at each use, and does not fall behind while the process is frozen or the machine sleeps.
 */
export const LEASE_MS = 3_000;

/** A version, and the number of events that had changed the known versions by then. */
interface KnownVersion extends Version {
  readonly order: number;
}

/** A caller as the database had it under a version of its developer. */
export interface CachedCaller extends Caller {
  readonly version: Version;
}

/** The reading of a record from the database. */
export interface Reading {
  /**
   * Keeps a record under the version of its developer that was known when the reading began. Any version since may be
   * that of a change that the record lacks.
   */
  keep(caller: Caller): void;
  /** @throws DatabaseSuperseded if the record may be of a primary that has been replaced since the reading began */
  confirm(): void;
}

/** Why records are void, whether they are kept or being read. */
export type VoidingEvent =
  /** Redis held this version at some time. It voids the records of any other version, or another session. */
  | { readonly kind: 'version'; readonly developerId: number; readonly version: Version }
  /**
   * A look at the announcements is complete. It voids the records of these developers, or all if one of them is 0, and
   * opens the cache for a lease from `beganAt`, on the clock of the cache.
   */
  | { readonly kind: 'look'; readonly changed: readonly number[]; readonly beganAt: number }
  /** Another server has become the primary, which voids all records. */
  | { readonly kind: 'promotion' };

/**
 * Records of callers, by the hash of their key, each read under a version of its developer. A caller whose developer has
 * no version is not cached. The states of a record, and the events that end it, are in `src/README.md`.
 *
 * The cache is open while a {@link LEASE_MS lease} from a look at the announcements runs. Only they report a change that
 * renews no version, such as a plain UPDATE, or that of a command that was killed half-way or cannot reach Redis.
 */
export class CallerCache {
  readonly #records = new LRUCache<string, CachedCaller>({ max: MAX_RECORDS });
  /** By developer. A record is void unless it was read under the very object that is here. */
  readonly #versions = new LRUCache<number, KnownVersion>({ max: MAX_RECORDS });
  /** By id. Most callers share a few. */
  readonly #plans = new Map<string, Plan>();
  #order = 0;
  #openUntil = -Infinity;
  /** Results of lookups since the process began. Stale: there was a record, but its version could not be confirmed. */
  readonly lookupCounts = { hit: 0, miss: 0, stale: 0 };

  /**
   * @param fence - of the database that the records are read from
   * @param clock - the clock that `expiresAt` and the lease are measured on
   */
  constructor(
    private readonly fence: Fence,
    private readonly clock = STEADY_CLOCK,
  ) {
    fence.onRaised(() => this.apply({ kind: 'promotion' }));
  }

  get size(): number {
    return this.#records.size;
  }

  get isOpen(): boolean {
    return this.clock.now() < this.#openUntil;
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

  /** Begins to read a record. Call it before the query is sent. */
  begin(hash: string): Reading {
    const beganAt = this.#order;
    const timeline = this.fence.newest;
    return {
      keep: (caller) => {
        const version = this.#versions.get(caller.developerId);
        if (version !== undefined && version.order <= beganAt) this.#records.set(hash, this.#toRecord(caller, version));
      },
      confirm: () => this.fence.confirm(timeline),
    };
  }

  apply(event: VoidingEvent): void {
    switch (event.kind) {
      case 'version': {
        const { developerId, version } = event;
        // Its timeline may be newer: then everything is void before the version is known.
        observeTimeline(this.fence, version.token);
        const known = this.#versions.get(developerId);
        if (known?.token === version.token && known.session === version.session) return;
        this.#order += 1;
        if (version.token === '') this.#versions.delete(developerId);
        else this.#versions.set(developerId, { ...version, order: this.#order });
        return;
      }
      case 'look':
        if (event.changed.includes(0)) this.#clear();
        for (const id of event.changed) this.#versions.delete(id);
        this.#openUntil = event.beganAt + LEASE_MS;
        return;
      case 'promotion':
        this.#clear();
    }
  }

  /** Copies a caller: texts that are slices of the database's answer would keep all of it in memory. */
  #toRecord(caller: Caller, version: KnownVersion): CachedCaller {
    const { keyId, keyPrefix, developerId, projectName, attributionRequired, expiresAt, plan } =
      structuredClone(caller);
    const known = this.#plans.get(plan.id);
    const isKnown = known !== undefined && isDeepStrictEqual(known, plan);
    if (!isKnown) this.#plans.set(plan.id, plan);
    const shared = isKnown ? known : plan;
    // One object of one shape, spelled out: a spread would take twice the memory.
    return { keyId, keyPrefix, developerId, projectName, attributionRequired, plan: shared, expiresAt, version };
  }

  #clear(): void {
    this.#versions.clear();
    this.#records.clear();
  }
}
