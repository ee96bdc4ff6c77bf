import { LRUCache } from 'lru-cache';
import { STEADY_CLOCK } from '../platform/time/steady-clock.js';
import type { Caller } from './callers.js';

/** The most records kept, about 400 bytes each. */
const MAX_RECORDS = 50_000;

/** A caller as the database had it under an epoch. */
export interface CachedCaller {
  readonly caller: Caller;
  readonly epoch: string;
}

/**
 * Records of callers, by the hash of their key, all read under one epoch.
 *
 * It is closed until the database announces its changes. Only announcements report a change without a new epoch: a
 * plain UPDATE, or a command that died half-way.
 */
export class CallerCache {
  readonly #records = new LRUCache<string, Caller>({ max: MAX_RECORDS });
  #epoch: string | undefined;
  #isOpen = false;
  /** Counts the changes that made all earlier records void, and also those that are being read. */
  #generation = 0;
  /** How lookups went since the process began. Stale: there was a record, but its epoch could not be confirmed. */
  readonly lookupCounts = { hit: 0, miss: 0, stale: 0 };

  /** @param clock - the one by which the callers' times of expiry are noted */
  constructor(private readonly clock = STEADY_CLOCK) {}

  get size(): number {
    return this.#records.size;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The epoch that records are kept under; undefined while there is none. It may have ended. */
  get epoch(): string | undefined {
    return this.#epoch;
  }

  /** @returns undefined where there is no record, or when its key may have expired: the database knows */
  get(hash: string): CachedCaller | undefined {
    const caller = this.#records.get(hash);
    if (caller === undefined || this.#epoch === undefined) return undefined;
    if (caller.expiresAt === Infinity || caller.expiresAt > this.clock.now()) return { caller, epoch: this.#epoch };
    this.#records.delete(hash);
    return undefined;
  }

  /**
   * Prepares to keep a record that is about to be read from the database. Records of another epoch are dropped.
   *
   * @param epoch - as it was read before the database, however long ago: one that has ended confirms no record
   * @returns the current generation, for {@link keep}; undefined while the cache is closed
   */
  beginRead(epoch: string): number | undefined {
    if (!this.#isOpen) return undefined;
    if (epoch !== this.#epoch) {
      this.drop();
      this.#epoch = epoch;
    }
    return this.#generation;
  }

  /** Keeps a record, unless a change since {@link beginRead} has made it void. */
  keep(generation: number, hash: string, caller: Caller): void {
    // A copy: texts that are slices of the database's answer would keep all of it in memory.
    if (this.#isOpen && generation === this.#generation) this.#records.set(hash, structuredClone(caller));
  }

  /**
   * Drops the records of an epoch that has ended.
   *
   * @param current - the epoch that Redis holds now, for records to come; empty for none
   */
  end(epoch: string, current: string): void {
    if (epoch !== this.#epoch) return;
    this.drop();
    if (current !== '') this.#epoch = current;
  }

  drop(): void {
    this.#generation += 1;
    this.#epoch = undefined;
    this.#records.clear();
  }

  /** From now on the database announces its changes. */
  open(): void {
    this.#isOpen = true;
  }

  /** From now on the database may change unannounced. */
  close(): void {
    this.#isOpen = false;
    this.drop();
  }
}
