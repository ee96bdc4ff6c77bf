import type { OperatorError } from '../errors.js';
import type { Progress } from '../platform/process/progress.js';

/** The observable events of a mirror. The command decides which it prints and which it counts. */
export type Observation =
  /** A request or the mirror's database failed, and is tried again after the wait. */
  | { readonly kind: 'retrying'; readonly failure: OperatorError; readonly waitMs: number }
  /** Loading begins: of a copy, or without one of the whole feed. */
  | { readonly kind: 'loading'; readonly copyOf: string | undefined; readonly copiesUrl: string }
  | { readonly kind: 'progress'; readonly progress: Progress }
  /** The mirror equals the loaded copy or feed. The counts are rows. */
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
  /** The service has another feed than the mirror has followed. */
  | { readonly kind: 'feed-replaced'; readonly error: OperatorError };

export type Observe = (observation: Observation) => void;
