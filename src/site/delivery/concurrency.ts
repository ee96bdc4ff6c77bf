import { serviceUnavailable } from '../../http/response/problems.js';
import { Semaphore } from '../../platform/process/semaphore.js';
import type { RequestState } from '../../http/request/context.js';
import { PageError } from '../layout/error-page.js';

/** Bounds on the pages that are made at the same time. */
export interface PageLimits {
  /** Pages in the making. Each may hold a connection of the database, and the API must keep the most of them. */
  readonly running: number;
  /** Requests that wait for their turn. The deadline of a request bounds their time. */
  readonly waiting: number;
  /** Requests of one address, in the making and waiting. */
  readonly ofOneAddress: number;
}

export const PAGE_LIMITS: PageLimits = { running: 3, waiting: 100, ofOneAddress: 25 };

/** The requests of an address. */
interface Share {
  present: number;
  /** A turn is always left to other addresses, and few of this one stand in the common queue. */
  readonly turns: Semaphore;
}

/**
 * Bounds how many pages are made at the same time. So requests for pages cannot take the database from the API. Those of one
 * address cannot take the pages from the others. Only addresses with a request are remembered.
 *
 * @returns a function that makes a page in its turn. It throws Problem service_unavailable where too many requests wait, and
 *   PageError 429 where too many of the address do
 */
export function boundConcurrency({ running, waiting, ofOneAddress }: PageLimits) {
  const turns = new Semaphore(running);
  const shares = new Map<string, Share>();
  let present = 0;

  return async (state: RequestState, address: string, makePage: () => Promise<unknown>): Promise<void> => {
    if (present >= running + waiting) {
      throw serviceUnavailable({ detail: 'Too many people ask for pages at the moment. Try again in a few seconds.' });
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
      if (!state.isTimeUp) await makePage();
    } finally {
      turns.release();
      share.turns.release();
      present -= 1;
      share.present -= 1;
      if (share.present === 0) shares.delete(address);
    }
  };
}

function tooManyAtOnce(): PageError {
  return new PageError(
    429,
    'Too many pages at once',
    'Your address asks for too many pages at the same time. Wait a few seconds and try again.',
    { 'Retry-After': '2' },
  );
}
