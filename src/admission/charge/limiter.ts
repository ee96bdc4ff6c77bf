import type { Plan } from '../../limits/plans.js';
import type { Quota } from '../../limits/quotas.js';
import type { Version } from '../versions.js';

/** A request to charge. It counts per developer and plan: more keys do not buy more requests. */
export interface QuotaRequest {
  readonly developerId: number;
  readonly plan: Plan;
}

/** A request that was charged to all quotas of its plan, or refused by one of them and charged to none. */
export interface Decision {
  readonly kind: 'charged' | 'refused';
  /** The state of each quota afterwards. */
  readonly quotas: readonly Quota[];
  /** The developer's version at that moment; undefined if it was required, and where this process counted. */
  readonly version: Version | undefined;
}

/** The outcome of a request that was to be charged only under one version. */
export type ConditionalCharge =
  | Decision
  /** Redis holds another version, and nothing was charged. Undefined: Redis did not answer in time. */
  | { readonly kind: 'unconfirmed'; readonly version: Version | undefined };

/** The state of a developer's quotas, without charging a request. */
export interface QuotaState {
  readonly quotas: readonly Quota[];
  /** Where requests are counted: in Redis for all servers together, or in this process. */
  readonly countedIn: 'redis' | 'process';
}

/** How many requests were charged and refused since the process began. */
export type DecisionCounts = Record<Decision['kind'], number>;

/** Reads the state of quotas. */
export interface QuotaReader {
  read(request: QuotaRequest): Promise<QuotaState>;
}

/** Counts requests and refuses those over a quota. */
export interface Limiter extends QuotaReader {
  /** The decisions so far, by where they were counted. */
  readonly decisions: Readonly<Partial<Record<QuotaState['countedIn'], DecisionCounts>>>;
  /** Charges one request to all quotas of its plan, or to none if one of them has no room. */
  charge(request: QuotaRequest): Promise<Decision>;
  /** Charges one request like {@link charge}, but only while Redis holds this version, in one step. */
  chargeUnder(version: Version, request: QuotaRequest): Promise<ConditionalCharge>;
}
