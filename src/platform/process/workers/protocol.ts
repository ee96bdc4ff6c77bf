import type { MetricsSnapshot } from '../../telemetry/metrics.js';

/** How often a worker says that it is alive, in milliseconds. */
export const HEARTBEAT_INTERVAL_MS = 1_000;

/** A message from a worker to the primary. */
export type Report =
  | { readonly kind: 'heartbeat' }
  | { readonly kind: 'listening'; readonly url: string }
  /** Nobody reads the log of all processes any more. */
  | { readonly kind: 'unread' }
  | { readonly kind: 'metrics'; readonly snapshot: MetricsSnapshot }
  /** The worker ends, for this reason, which is written for the operator. */
  | { readonly kind: 'failed'; readonly reason: string };

/** A message from the primary to a worker. */
export type Order =
  /** End in order. `drains`: first go on serving, for as long as the settings say. */
  | { readonly kind: 'stop'; readonly drains: boolean }
  /** Send your metrics. */
  | { readonly kind: 'measure' };

/** Node.js and other packages use the same channel. Messages without this mark are theirs, and are ignored. */
const MARK = 'catalogWorker';

/** Makes a message of a report or an order. */
export function wrap(content: Report | Order): object {
  return { [MARK]: content };
}

/** @returns a Report in the primary, an Order in a worker; undefined when the message is not ours */
export function unwrap(message: unknown): unknown {
  return typeof message === 'object' && message !== null && MARK in message ? message[MARK] : undefined;
}
