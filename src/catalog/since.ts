import { Problem } from '../errors.js';
import type { FeedBounds } from './feed.js';
import { MICROS_PER_SECOND, toSeconds, type Micros } from '../platform/postgres/timestamps.js';

/** How far back the feed answers. */
export const WINDOW: Micros = 30n * 86_400n * MICROS_PER_SECOND;

/** How far ahead of ours a client's clock may be. */
const CLOCK_SKEW: Micros = 60n * MICROS_PER_SECOND;

/** A JSON number (RFC 8259, section 6). SDKs write large and small ones as `1.7637e9`. */
const JSON_NUMBER = /^(?<sign>-?)(?<whole>0|[1-9]\d*)(?:\.(?<fraction>\d+))?(?:[eE](?<exponent>[+-]?\d+))?$/;

/** As in the contract: longer than any sensible number, and short enough that a hostile one costs nothing. */
const MAX_LENGTH = 64;

const DECIMALS = 6;

/** So many seconds lie past the year 5000: the client's clock counts in a smaller unit. */
const SURELY_NOT_SECONDS: Micros = 100_000_000_000n * MICROS_PER_SECOND;

/**
 * Parses the parameter `since` from its text: a float in between would round the microseconds.
 *
 * @param values - every value that the request gave, decoded; a request should give one
 * @returns microseconds since 1970, exact
 * @throws Problem missing_since, invalid_since
 */
export function parseSince(values: readonly string[]): Micros {
  const [text] = values;
  if (text === undefined) {
    throw new Problem(
      'missing_since',
      'The query parameter since is required: Unix time in seconds. To begin, send the position that came with your copy of the catalogue, or a time an hour before it, at most 30 days ago; then send meta.next_since of each answer.',
    );
  }
  if (values.length > 1) throw invalidSince('since is given more than once. Send it once.');
  if (text === '')
    throw invalidSince('since is empty. Send Unix time in seconds, such as 1795218005 or 1795218005.123456.');
  if (text.length > MAX_LENGTH) {
    throw invalidSince(
      `since is longer than ${MAX_LENGTH} characters. Send Unix time in seconds, such as 1795218005 or 1795218005.123456.`,
    );
  }
  const number = JSON_NUMBER.exec(text)?.groups;
  if (number === undefined) {
    throw invalidSince(
      'since is not a number. Send Unix time in seconds, such as 1795218005 or 1795218005.123456; an ISO date is not accepted.',
    );
  }
  const { sign = '', whole = '', fraction = '', exponent = '0' } = number;
  const digits = (whole + fraction).replace(/^0+/, '');
  if (digits === '') return 0n;
  if (sign !== '') throw invalidSince('since is negative. Send Unix time in seconds, such as 1795218005.');
  // The value is digits × 10^power microseconds.
  const power = Number(exponent) - fraction.length + DECIMALS;
  if (power >= 0) {
    if (digits.length + power > MAX_LENGTH) throw farAhead(SURELY_NOT_SECONDS);
    return BigInt(digits) * 10n ** BigInt(power);
  }
  const kept = digits.slice(0, power);
  if (/[1-9]/.test(digits.slice(power))) {
    throw invalidSince('since has more than six decimals. Microseconds are the finest step of the feed.');
  }
  return kept === '' ? 0n : BigInt(kept);
}

/**
 * Requires that `since` lies within the window of the feed and not before its beginning.
 *
 * @param now - this process's clock
 * @param bounds - of the feed. Stamps never step back but clocks do, so the feed may be ahead of the clock. A client
 *   may always send back the position that it received.
 * @throws Problem since_out_of_window with `oldest_since`, invalid_since
 */
export function requireWithinWindow(since: Micros, now: Micros, { beginning, newest }: FeedBounds): void {
  requireBegun(since, now, beginning);
  const oldest = now - WINDOW;
  if (since < oldest) {
    throw outOfWindow(
      oldest,
      'since is more than 30 days in the past, further than the feed reaches. Get a fresh copy of the catalogue from its operator and follow from the position that comes with it; or go on from oldest_since, the oldest value accepted at this moment, without what changed in between.',
    );
  }
  if (since > now + CLOCK_SKEW && since > newest) throw farAhead(since);
}

/**
 * Requires only that `since` does not lie before the beginning of the feed. A client with an earlier position needs a
 * new copy: its mirror may have entries that the catalogue has lost.
 *
 * @throws Problem since_out_of_window with `oldest_since`
 */
export function requireBegun(since: Micros, now: Micros, beginning: Micros): void {
  if (since >= beginning) return;
  const oldest = now - WINDOW;
  throw outOfWindow(
    beginning > oldest ? beginning : oldest,
    'since lies before the time at which the catalogue was restored: what the feed gave until then no longer holds. Get a copy of the catalogue that its operator has made since then, and follow from the position that comes with it. A copy without a position: follow from an hour before it was begun, or from oldest_since if that is later.',
  );
}

function outOfWindow(oldest: Micros, detail: string): Problem {
  return new Problem('since_out_of_window', detail, { members: { oldest_since: toSeconds(oldest) } });
}

function farAhead(since: Micros): Problem {
  return invalidSince(
    since >= SURELY_NOT_SECONDS
      ? 'since lies far in the future: it looks like milliseconds or a finer unit. Send seconds: divide milliseconds by 1000.'
      : 'since lies in the future by more than 60 seconds. Send Unix time in seconds, and check your clock.',
  );
}

function invalidSince(detail: string): Problem {
  return new Problem('invalid_since', detail);
}
