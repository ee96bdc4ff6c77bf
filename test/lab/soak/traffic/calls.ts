import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { send, type Reply } from '../../../support/request.js';
import type { Visitor } from '../../../support/http/visitor.js';
import { TITLES } from '../deployment.js';
import type { History } from '../history.js';
import type { Keyring, KnownKey } from './keys.js';

/** Connections, each with one call at a time. */
const LANES = 16;

/** The part of calls whose key has ended. */
const WITH_ENDED_KEY = 0.08;

const PAGES_PAUSE_MS = 700;

/** Clients of the API: many calls on few connections, each with a key that works or has ended. */
export class Calls {
  /** Calls that were answered since the last failure. */
  inARow = 0;
  #addresses = 0;
  #etag = '';
  readonly #stop = new AbortController();
  #lanes: Promise<void>[] = [];

  constructor(
    private readonly url: string,
    private readonly keyring: Keyring,
    private readonly history: History,
  ) {}

  /** Begins to call. @param rate - calls a second */
  start(rate: number): void {
    const pauseMs = (LANES / rate) * 1000;
    this.#lanes = Array.from({ length: LANES }, () => this.#lane(pauseMs));
  }

  /** Ends when all calls are answered. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#lanes);
  }

  /** Calls once, and records what came back. */
  async call(key: KnownKey, path: string, agent?: Agent): Promise<void> {
    const { history } = this;
    this.#addresses += 1;
    const headers = {
      authorization: `Bearer ${key.key}`,
      // A new client each time, since refusals are limited by address.
      'x-forwarded-for': `10.${(this.#addresses >> 16) & 255}.${(this.#addresses >> 8) & 255}.${this.#addresses & 255}`,
      ...(path.endsWith('/stats') && this.#etag !== '' && { 'if-none-match': this.#etag }),
    };
    const start = history.now();
    const { status, etag } = await send(this.url, path, { headers, ...(agent && { agent }) }).then(
      (reply) => ({
        status: statusOf(reply),
        etag: path.endsWith('/stats') ? reply.headers.etag : undefined,
      }),
      () => ({ status: 0, etag: undefined }),
    );
    this.#etag = etag ?? this.#etag;
    this.inARow = status === 0 || status >= 500 ? 0 : this.inARow + 1;
    history.record({
      kind: 'call',
      key: key.prefix,
      developer: key.developer,
      path: path.replace(/\?.*/, ''),
      status,
      start,
      end: history.now(),
    });
  }

  async #lane(pauseMs: number): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    let next = performance.now() + Math.random() * pauseMs;
    while (!this.#stop.signal.aborted) {
      const wait = next - performance.now();
      if (wait > 1) await delay(wait);
      // A lane that an outage has held up does not call faster afterwards.
      next = Math.max(next, performance.now() - pauseMs) + pauseMs;
      await this.call(this.#anyKey(), anyPath(), agent);
    }
    agent.destroy();
  }

  #anyKey(): KnownKey {
    const { keyring } = this;
    const ended = Math.random() < WITH_ENDED_KEY ? keyring.ended : [];
    return any(ended.length > 0 ? ended : keyring.active);
  }
}

/** Opens pages one after the other, as a person who is signed in. */
export async function viewPages(
  visitor: Visitor,
  pages: readonly string[],
  history: History,
  signal: AbortSignal,
): Promise<void> {
  for (let turn = 0; !signal.aborted; turn += 1) {
    const path = pages[turn % pages.length] ?? '/';
    const start = history.now();
    const status = await visitor.get(path).then(statusOf, () => 0);
    history.record({ kind: 'view', path, status, start, end: history.now() });
    await delay(PAGES_PAUSE_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** @returns the status of the service; 0 when the balancer answered because a server gave no whole answer */
function statusOf({ status, headers }: Reply): number {
  // 503 is also the answer of a balancer whose servers are all not ready.
  return headers['x-request-id'] === undefined && status !== 503 ? 0 : status;
}

function anyPath(): string {
  const title = `titles/${any(TITLES)}`;
  // The end of the feed, where mirrors are most of the time.
  const tail = `changes?since=${Math.floor(Date.now() / 1000) - 5}`;
  return `/api/v1/${any(['me', 'me', 'stats', title, title, tail])}`;
}

/** @returns one of several, by chance */
export function any<Item>(items: readonly Item[]): Item {
  const item = items[Math.floor(Math.random() * items.length)];
  if (item === undefined) throw new Error('there is none to choose');
  return item;
}
