import { Problem } from '../errors.js';
import type { QuietFeed } from './feed.js';
import { MICROS_PER_SECOND, toSeconds, type Micros } from '../platform/time/micros.js';

/** How far back the feed answers. */
export const WINDOW: Micros = 30n * 86_400n * MICROS_PER_SECOND;

/** How far ahead of ours a client's clock may be. */
const CLOCK_SKEW: Micros = 60n * MICROS_PER_SECOND;

/** Languages that print 14 digits round a position of today to four decimals, so up by half of the fourth. */
const ROUNDED_UP: Micros = 50n;

/** How much later than the window's edge the position is that a refusal offers, since the edge moves until it is sent. */
const TIME_TO_RETRY: Micros = 60n * MICROS_PER_SECOND;

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
 * @returns microseconds since 1970. Finer digits are rounded: a double printed with 17 digits has a seventh decimal.
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
  if (digits.length < -power) return 0n;
  const [next = 0] = digits.slice(power);
  return BigInt(digits.slice(0, power)) + (Number(next) < 5 ? 0n : 1n);
}

/**
 * Gives the position that a client may have sent before its language rounded it up. Stamps never end in 0 (see
 * db/migrations), so a position that does has lost digits, or somebody chose it.
 */
export function beforeRounding(since: Micros): Micros {
  return endsInZero(since) ? since - ROUNDED_UP : since;
}

/** Makes a time of a clock a position that {@link beforeRounding} keeps: rounded down, so that it passes nothing by. */
export function asPosition(time: Micros): Micros {
  return endsInZero(time) ? time - 1n : time;
}

function endsInZero(time: Micros): boolean {
  return time % 10n === 0n;
}

/**
 * Requires that `since` lies within the window of the feed and not before its beginning. A client with a position before
 * the beginning needs a new copy: its mirror may have entries that the catalogue has lost.
 *
 * @param now - this process's clock
 * @param feed - its bounds and the database's clock. Stamps never step back but clocks do, and those of two servers may
 *   differ. A client may always send back the position that it received, to any server.
 * @throws Problem since_out_of_window with `oldest_since`, invalid_since
 */
export function requireWithinWindow(
  since: Micros,
  now: Micros,
  { beginning, newest, clock }: Omit<QuietFeed, 'quiet'>,
): void {
  const oldest = now - WINDOW;
  const offered = oldest + TIME_TO_RETRY;
  if (since < beginning) {
    throw outOfWindow(
      beginning > offered ? beginning : offered,
      'since lies before the time at which the catalogue was restored: what the feed gave until then no longer holds. Get a copy of the catalogue that its operator has made since then, and follow from the position that comes with it. A copy without a position: follow from an hour before it was begun, or from oldest_since if that is later.',
    );
  }
  if (since < oldest) {
    throw outOfWindow(
      offered,
      'since is more than 30 days in the past, further than the feed reaches. Get a fresh copy of the catalogue from its operator and follow from the position that comes with it; or go on from oldest_since, which is accepted for another minute, without what changed in between.',
    );
  }
  if (since > newest && since > (now > clock ? now : clock) + CLOCK_SKEW) throw farAhead(since);
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
