import { Problem } from '../../errors.js';
import { Semaphore } from '../../platform/async/semaphore.js';
import { serviceUnavailable } from '../response/problems.js';
import type { RequestState } from './context.js';

/** Bounds on requests outside the API that are served at the same time. */
export interface ConcurrencyLimits {
  /** Requests being served. Each may hold a connection of the database, and the API must keep the most of them. */
  readonly running: number;
  /** Requests that wait for their turn. The deadline of a request bounds their time. */
  readonly waiting: number;
  /** Requests of one address, being served and waiting. */
  readonly ofOneAddress: number;
}

/** The requests of an address. */
interface Share {
  present: number;
  /** A turn is always left to other addresses, and few of this one stand in the common queue. */
  readonly turns: Semaphore;
}

/**
 * Bounds how many requests of one kind are served at the same time. They leave the API its connections to the database, and
 * those of one address leave the others their turns. Only addresses with a request are remembered.
 *
 * @returns a function that serves a request in its turn. It throws Problem service_unavailable where too many requests
 *   wait, and rate_limit_exceeded where too many of the address do
 */
export function boundConcurrency({ running, waiting, ofOneAddress }: ConcurrencyLimits) {
  const turns = new Semaphore(running);
  const shares = new Map<string, Share>();
  let present = 0;

  return async (state: RequestState, address: string, serve: () => Promise<unknown>): Promise<void> => {
    if (present >= running + waiting) {
      throw serviceUnavailable({ detail: 'Too many requests are waiting. Try again in a few seconds.' });
    }
    const share = shares.get(address) ?? { present: 0, turns: new Semaphore(Math.max(1, running - 1)) };
    if (share.present >= ofOneAddress) throw tooManyAtOnce();
    shares.set(address, share);
    present += 1;
    share.present += 1;
    await share.turns.acquire();
    await turns.acquire();
    try {
      // The deadline may have answered the request while it waited.
      if (!state.timedOut) await serve();
    } finally {
      turns.release();
      share.turns.release();
      present -= 1;
      share.present -= 1;
      if (share.present === 0) shares.delete(address);
    }
  };
}

function tooManyAtOnce(): Problem {
  return new Problem(
    'rate_limit_exceeded',
    'Your address sends too many requests at the same time. Wait a few seconds and try again.',
    { headers: { 'Retry-After': '2' } },
  );
}
