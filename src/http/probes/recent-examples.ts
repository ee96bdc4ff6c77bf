const DAY_MS = 86_400_000;

/** How long examples keep their times, in milliseconds. The times change by whole days. */
export const EXAMPLES_LIFETIME_MS = 3_600_000;

/** The origin of the service in examples. */
export const EXAMPLE_ORIGIN = 'https://catalog.example.com';

/** The latest moment among the examples of `openapi.yaml`, in seconds. */
const EXAMPLE_TIME = 1_795_218_005.123_456;

/**
 * The contract with the times of its examples moved by whole days, so that the latest lies within the last day. Tools
 * that send the example of `since` then get a page: the feed reaches back 30 days.
 *
 * @param now - in milliseconds
 */
export function withRecentExamples(contract: string, now: number): string {
  const days = Math.floor((now - EXAMPLE_TIME * 1000) / DAY_MS);
  return contract
    .replace(/\b\d{10}(?=\.\d{6}\b)/g, (seconds) => String(Number(seconds) + (days * DAY_MS) / 1000))
    .replace(/\b\d{4}-\d\d-\d\d(?=T\d\d:\d\d:\d\d\.\d{6}Z)/g, (date) =>
      new Date(Date.parse(date) + days * DAY_MS).toISOString().slice(0, 10),
    );
}
