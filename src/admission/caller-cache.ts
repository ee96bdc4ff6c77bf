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
 * Records of callers, by the hash of their key, all read under one epoch. It keeps none without an epoch.
 *
 * It is closed while the database cannot announce its changes: only announcements report a change that sets no new
 * epoch, such as a plain UPDATE or that of a command which was killed half-way.
 */
export class CallerCache {
  // With `max`, it would allocate room for all of them at once, and go through it whenever it is cleared.
  readonly #records = new LRUCache<string, Caller>({ maxSize: MAX_RECORDS, sizeCalculation: () => 1 });
  #epoch: string | undefined;
  #isOpen = false;
  #generation = 0;
  /** Results of lookups since the process began. Stale: there was a record, but its epoch could not be confirmed. */
  readonly lookupCounts = { hit: 0, miss: 0, stale: 0 };

  /** @param clock - the clock that `expiresAt` is measured on */
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

  /** Changes with everything that makes records void, for {@link keep}. */
  get generation(): number {
    return this.#generation;
  }

  /** @returns undefined if there is no record, or if its key may have expired: then only the database can decide */
  get(hash: string): CachedCaller | undefined {
    const caller = this.#records.get(hash);
    if (caller === undefined || this.#epoch === undefined) return undefined;
    if (caller.expiresAt === Infinity || caller.expiresAt > this.clock.now()) return { caller, epoch: this.#epoch };
    this.#records.delete(hash);
    return undefined;
  }

  /** @param generation - the {@link generation} before the record was read: if it has changed, nothing is kept */
  keep(generation: number, hash: string, caller: Caller): void {
    if (this.#epoch === undefined || generation !== this.#generation) return;
    // A copy: texts that are slices of the database's answer would keep all of it in memory.
    this.#records.set(hash, structuredClone(caller));
  }

  /**
   * Drops the records of an epoch that has ended, and keeps later ones under its successor.
   *
   * @param ended - does nothing if the cache has another epoch by now
   * @param current - the epoch in Redis; empty for none
   */
  replaceEpoch(ended: string | undefined, current: string): void {
    if (this.#isOpen && ended === this.#epoch) this.#restart(current === '' ? undefined : current);
  }

  /** Drops all records, for a change that the database announced. Later ones are kept under the same epoch. */
  clear(): void {
    this.#restart(this.#epoch);
  }

  /** Drops all records and the epoch: the next Redis or database to answer may not be the one that they came from. */
  reset(): void {
    this.#restart(undefined);
  }

  /** Call it when the database announces its changes. */
  open(): void {
    this.#isOpen = true;
  }

  /** Call it when changes of the database may go unannounced. */
  close(): void {
    this.#isOpen = false;
    this.reset();
  }

  #restart(epoch: string | undefined): void {
    this.#generation += 1;
    this.#epoch = epoch;
    this.#records.clear();
  }
}
