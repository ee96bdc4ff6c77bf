import { Problem } from '../errors.js';
import type { FeedClock } from './feed.js';
import { MICROS_PER_SECOND, toSeconds, type Micros } from '../platform/time/micros.js';

/** How far back the feed answers. */
export const WINDOW: Micros = 30n * 86_400n * MICROS_PER_SECOND;

/** How far ahead of ours a client's clock may be. */
const CLOCK_SKEW: Micros = 60n * MICROS_PER_SECOND;

/** Languages that print 14 digits round a position to four decimals: up by at most half of the fourth. */
const ROUNDED_UP: Micros = 50n;

/** How much later than the window's edge `oldest_since` is: the edge moves until a client sends it. */
const TIME_TO_RETRY: Micros = 60n * MICROS_PER_SECOND;

/** A JSON number (RFC 8259, section 6). SDKs write large and small ones as `1.7637e9`. */
const JSON_NUMBER = /^(?<sign>-?)(?<whole>0|[1-9]\d*)(?:\.(?<fraction>\d+))?(?:[eE](?<exponent>[+-]?\d+))?$/;

/** As in the contract: longer than any sensible number, and cheap to parse. */
const MAX_LENGTH = 64;

const DECIMALS = 6;

/** Past the year 5000: the client's clock counts in a smaller unit than seconds. */
const SURELY_NOT_SECONDS: Micros = 100_000_000_000n * MICROS_PER_SECOND;

/**
 * Parses the parameter `since` from its text, without a float in between, which would round the microseconds.
 *
 * @param values - every decoded value of the parameter in the request; there should be one
 * @returns microseconds since 1970. Finer digits are rounded: a double printed with 17 digits has a seventh decimal.
 * @throws Problem missing_since, invalid_since
 */
export function parseSince(values: readonly string[]): Micros {
  const [text] = values;
  if (text === undefined) {
    throw new Problem(
      'missing_since',
      'The query parameter since is required: Unix time in seconds. To start, send the position that came with your copy of the catalogue, or the time one hour before the copy was started, at most 30 days ago. Then send the meta.next_since of each response.',
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
  // The value in microseconds is digits × 10^power.
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
 * Returns the position that a client may have had before its language rounded it up. Stamps never end in 0 (see
 * db/migrations), so a position that does has lost digits, or the client chose it.
 */
export function beforeRounding(since: Micros): Micros {
  return endsInZero(since) ? since - ROUNDED_UP : since;
}

/** Turns a clock's time into a position that {@link beforeRounding} keeps. Rounds down, so as to skip nothing. */
export function asPosition(time: Micros): Micros {
  return endsInZero(time) ? time - 1n : time;
}

function endsInZero(time: Micros): boolean {
  return time % 10n === 0n;
}

/**
 * Requires that `since` lies within the window and not before the feed start. A client with an earlier position needs a
 * new copy: its mirror may have entries that the catalogue has lost.
 *
 * @param now - this process's clock
 * @param feed - its bounds and the database's clock. Clocks may step back, and those of two servers may differ, but a
 *   client may always send the position that it received back to any server.
 * @throws Problem since_out_of_window with `oldest_since`, invalid_since
 */
export function requireWithinWindow(
  since: Micros,
  now: Micros,
  { feedStart, newest, clock }: Pick<FeedClock, 'feedStart' | 'newest' | 'clock'>,
): void {
  const oldest = now - WINDOW;
  const offered = oldest + TIME_TO_RETRY;
  if (since < feedStart) {
    throw outOfWindow(
      feedStart > offered ? feedStart : offered,
      'since is earlier than the time at which the catalogue was restored, and responses of the feed from before then are no longer valid. Get a copy of the catalogue made after that time and follow from the position that comes with it. Without a position, follow from an hour before the copy was started, or from oldest_since if that is later.',
    );
  }
  if (since < oldest) {
    throw outOfWindow(
      offered,
      'since is more than 30 days in the past, further back than the feed reaches. Get a fresh copy of the catalogue from its operator and follow from the position that comes with it. Or continue from oldest_since, which is accepted for another minute, and miss the changes in between.',
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
      ? 'since is far in the future and looks like milliseconds or a finer unit. Send seconds: divide milliseconds by 1000.'
      : 'since is more than 60 seconds in the future. Send Unix time in seconds, and check your clock.',
  );
}

function invalidSince(detail: string): Problem {
  return new Problem('invalid_since', detail);
}
