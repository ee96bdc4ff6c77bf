import type { MetricsSnapshot } from '../../telemetry/metrics.js';

/** How often a worker says that it is alive, in milliseconds. */
export const BEAT_INTERVAL_MS = 1_000;

/** What a worker tells the primary. */
export type Report =
  | { readonly kind: 'beat' }
  | { readonly kind: 'listening'; readonly url: string }
  /** Nobody reads the log that all processes write to. */
  | { readonly kind: 'unread' }
  | { readonly kind: 'metrics'; readonly snapshot: MetricsSnapshot }
  /** It ends, and this is why, in the words for the operator. */
  | { readonly kind: 'failed'; readonly reason: string };

/** What the primary tells a worker. */
export type Order =
  /** End in order. Drains: go on serving first, for as long as the settings say. */
  | { readonly kind: 'stop'; readonly drains: boolean }
  /** Tell your metrics. */
  | { readonly kind: 'measure' };

/** Node and other packages send messages over the same channel: those without this mark are theirs, and left alone. */
const MARK = 'catalogWorker';

/** Makes a message of a report or an order. */
export function seal(content: Report | Order): object {
  return { [MARK]: content };
}

/** @returns what is in a message; undefined when the message is somebody else's */
export function unseal(message: unknown): Report | Order | undefined {
  return typeof message === 'object' && message !== null && MARK in message
    ? (message[MARK] as Report | Order)
    : undefined;
}

/** Tells what a worker says from what it is told. */
export function isReport(content: Report | Order): content is Report {
  return content.kind !== 'stop' && content.kind !== 'measure';
}
