/** The units of a relative time, the longest first, each with the least number of seconds that it is used for. */
const UNITS = [
  { unit: 'year', seconds: 31_557_600, from: 2 * 31_557_600 },
  { unit: 'month', seconds: 2_629_800, from: 100 * 86_400 },
  { unit: 'day', seconds: 86_400, from: 47.5 * 3_600 },
  { unit: 'hour', seconds: 3_600, from: 59.5 * 60 },
  { unit: 'minute', seconds: 60, from: 60 },
] as const;

const FORMATS = {
  long: new Intl.RelativeTimeFormat('en-US'),
  narrow: new Intl.RelativeTimeFormat('en-US', { style: 'narrow' }),
};

/**
 * @param at - in RFC 3339
 * @param now - in milliseconds since 1970
 * @returns how long ago a time was, or how far ahead it is, for people: `3 days ago`, or narrow `3d ago`
 */
export function formatRelative(at: string, now: number, style: keyof typeof FORMATS = 'long'): string {
  const seconds = (Date.parse(at) - now) / 1_000;
  const found = UNITS.find(({ from }) => Math.abs(seconds) >= from);
  if (found === undefined) return seconds > 0 ? 'in less than a minute' : 'just now';
  return FORMATS[style].format(Math.round(seconds / found.seconds), found.unit);
}
