import { serviceUnavailable } from '../../http/response/problems.js';
import { Semaphore } from '../../platform/process/semaphore.js';
import type { RequestContext } from '../../http/request/context.js';

/** Bounds on the pages that are made at the same time. */
export interface PageLimits {
  /** Pages in the making. Each may hold a connection of the database, and the API must keep the most of them. */
  readonly running: number;
  /** Requests that wait for their turn. The deadline of a request bounds their time. */
  readonly waiting: number;
}

export const PAGE_LIMITS: PageLimits = { running: 3, waiting: 100 };

/**
 * Bounds how many pages are made at the same time. So requests for pages cannot take the database from the API.
 *
 * @throws Problem service_unavailable where too many requests wait
 */
export function boundConcurrency({ running, waiting }: PageLimits) {
  const semaphore = new Semaphore(running);
  let present = 0;
  return async ({ state }: RequestContext, makePage: () => Promise<unknown>): Promise<void> => {
    if (present >= running + waiting) {
      throw serviceUnavailable({ detail: 'Too many people ask for pages at the moment. Try again in a few seconds.' });
    }
    present += 1;
    await semaphore.acquire();
    try {
      // The deadline may have answered the request while it waited.
      if (state.timeUp === undefined) await makePage();
    } finally {
      semaphore.release();
      present -= 1;
    }
  };
}
