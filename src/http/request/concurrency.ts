import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { Problem } from '../../errors.js';
import { Semaphore } from '../../platform/async/semaphore.js';
import { serviceUnavailable } from '../response/problems.js';
import { clientAddress } from './client-address.js';
import type { Middleware } from './context.js';

/** Bounds on requests outside the API. */
export interface ConcurrencyLimits {
  /** Requests served at the same time. Each may hold a database connection, and the API must keep most of them. */
  readonly running: number;
  /** Requests that wait for their turn: addresses take turns. The deadline of a request bounds the wait. */
  readonly waiting: number;
  /** Requests of one address that are served or wait at the same time, so that it leaves room for others. */
  readonly perAddress: number;
  /** Requests that one address may send within {@link WINDOW_SECONDS}; undefined for any number. */
  readonly perWindow?: number;
}

const WINDOW_SECONDS = 10;

/**
 * Bounds how many requests of one kind this process serves at the same time, and how many of them are from one address.
 *
 * @param trustedProxies - number of trusted proxies; sets which `X-Forwarded-For` entry counts
 * @returns a middleware that throws Problem rate_limit_exceeded for an address above its limits, and
 *   service_unavailable while too many requests wait
 */
export function boundConcurrency(limits: ConcurrencyLimits, trustedProxies: number): Middleware {
  const { running, waiting, perAddress, perWindow } = limits;
  const addresses =
    perWindow === undefined ? undefined : new RateLimiterMemory({ points: perWindow, duration: WINDOW_SECONDS });
  const presentFrom = new Map<string, number>();
  const turns = new Semaphore(running);
  let present = 0;

  return async (ctx, next) => {
    const address = clientAddress(ctx.req, trustedProxies);
    await addresses?.consume(address).catch((refusal: unknown) => {
      throw refusal instanceof RateLimiterRes ? tooManyRequests(refusal.msBeforeNext) : refusal;
    });
    const own = presentFrom.get(address) ?? 0;
    if (own >= perAddress) throw tooManyRequests(1_000);
    if (present >= running + waiting) {
      throw serviceUnavailable({ detail: 'Too many requests are waiting. Try again in a few seconds.' });
    }
    present += 1;
    presentFrom.set(address, own + 1);
    await turns.acquire(address);
    try {
      // The deadline may have answered the request while it waited.
      if (ctx.state.timedOut !== true) await next();
    } finally {
      turns.release();
      present -= 1;
      const left = (presentFrom.get(address) ?? 1) - 1;
      if (left === 0) presentFrom.delete(address);
      else presentFrom.set(address, left);
    }
  };
}

function tooManyRequests(waitMs: number): Problem {
  const seconds = Math.ceil(waitMs / 1_000);
  return new Problem(
    'rate_limit_exceeded',
    `Too many requests from your IP address. Wait ${seconds} s and try again.`,
    { headers: { 'Retry-After': String(seconds) } },
  );
}
