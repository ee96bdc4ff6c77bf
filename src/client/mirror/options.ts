import type { FetchPage } from '../client.js';
import type { Observe } from '../observation.js';
import type { RetryOptions } from '../retry.js';
import type { CopySource } from './copy-source.js';

/** The tables of a mirror. */
export interface StoreOptions {
  readonly databaseUrl: string;
  /** The schema of the tables. */
  readonly schema: string;
}

/** The source of a mirror, its database, and how it is kept. */
export interface MirrorOptions extends RetryOptions, StoreOptions {
  /** The service: the URL before `/api/v1`. */
  readonly baseUrl: string;
  readonly source: CopySource;
  readonly fetchPage: FetchPage;
  /** Requests how many titles the service has. */
  readonly countTitles: (signal: AbortSignal) => Promise<number>;
  /** Return once caught up, and fail where only an operator can help, instead of waiting for that. */
  readonly once: boolean;
  /** The pause between two polls, in milliseconds; undefined for as short a one as the plan's limits allow. */
  readonly intervalMs: number | undefined;
  /** Let a load remove more than a tenth of the rows. */
  readonly allowRemovals: boolean;
  readonly observe: Observe;
}
