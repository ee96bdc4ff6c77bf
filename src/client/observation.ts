import type { OperatorError } from '../errors.js';
import type { Progress } from '../platform/process/progress.js';

/** What can be observed of a mirror. The command decides what is printed and what is counted. */
export type Observation =
  /** A request or the mirror's database failed, and is tried again after the wait. */
  | { readonly kind: 'retrying'; readonly failure: OperatorError; readonly waitMs: number }
  /** Loading begins: of a copy, or without one of the whole feed. */
  | { readonly kind: 'loading'; readonly copyOf: string | undefined; readonly copiesUrl: string }
  | { readonly kind: 'progress'; readonly progress: Progress }
  /** The mirror equals what was loaded. The counts are rows. */
  | {
      readonly kind: 'loaded';
      readonly copyOf: string | undefined;
      readonly counts: Readonly<Record<'inserted' | 'changed' | 'deleted', number>>;
    }
  | { readonly kind: 'following'; readonly position: number }
  /** A page and the position after it were committed. The request was sent at `requestedAt`. */
  | {
      readonly kind: 'stored';
      readonly entries: number;
      readonly position: number;
      readonly hasMore: boolean;
      readonly requestedAt: number;
    }
  /** The feed no longer accepts the mirror's position. */
  | { readonly kind: 'position-refused'; readonly position: number }
  /** The service has another feed than the one that the mirror has followed. */
  | { readonly kind: 'feed-replaced'; readonly error: OperatorError };

export type Observe = (observation: Observation) => void;
