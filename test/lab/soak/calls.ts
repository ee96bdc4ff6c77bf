import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { newAddress } from '../../support/http/new-address.js';
import type { Visitor } from '../../support/http/visitor.js';
import { send, type Reply } from '../../support/request.js';
import { titleIds } from '../../support/titles.js';
import type { History } from './history.js';
import { subjectsOf, type Keyring, type KnownKey } from './keys.js';

/** The titles of the catalogue. */
export const TITLES = titleIds(300);

/** Connections, each with one call at a time. */
const LANES = 16;

/** The part of calls whose key has ended. */
const WITH_ENDED_KEY = 0.08;

/** Calls in a row that new processes have answered before calls are recorded. */
const WARMING_CALLS = 100;

const PAGES_PAUSE_MS = 700;

/** Clients of the API: many calls on few connections, each with a key that works or has ended. */
export class Calls {
  #answered = 0;
  #etag = '';
  readonly #stop = new AbortController();
  #lanes: Promise<void>[] = [];

  constructor(
    private readonly url: string,
    private readonly keyring: Keyring,
    private readonly history: History,
  ) {}

  get areWarm(): boolean {
    return this.#answered >= WARMING_CALLS;
  }

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
    const etag = path.endsWith('/stats') && this.#etag !== '' && { 'if-none-match': this.#etag };
    const headers = { authorization: `Bearer ${key.key}`, 'x-forwarded-for': newAddress(), ...etag };
    const start = this.history.now();
    const reply = await send(this.url, path, { headers, ...(agent && { agent }) }).catch(() => undefined);
    const status = statusOf(reply);
    if (path.endsWith('/stats')) this.#etag = reply?.headers.etag ?? this.#etag;
    if (this.areWarm) {
      this.history.record({ kind: 'call', path: path.replace(/\?.*/, ''), status, subjects: subjectsOf(key) }, start);
    } else {
      this.#answered = status === 0 || status >= 500 ? 0 : this.#answered + 1;
    }
  }

  async #lane(pauseMs: number): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    let next = performance.now() + Math.random() * pauseMs;
    while (!this.#stop.signal.aborted) {
      await delay(Math.max(0, next - performance.now()));
      // A lane that an outage has held up does not call faster afterwards.
      next = Math.max(next, performance.now() - pauseMs) + pauseMs;
      const ended = Math.random() < WITH_ENDED_KEY ? this.keyring.ended : [];
      await this.call(any(ended.length > 0 ? ended : this.keyring.active), anyPath(), agent);
    }
    agent.destroy();
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
    history.record({ kind: 'call', path, status, subjects: [] }, start);
    await delay(PAGES_PAUSE_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** @returns the status of the service; 0 when the balancer answered because a server gave no whole answer */
function statusOf(reply: Reply | undefined): number {
  if (reply === undefined) return 0;
  // 503 is also the answer of a balancer whose servers are all not ready.
  return reply.headers['x-request-id'] === undefined && reply.status !== 503 ? 0 : reply.status;
}

function anyPath(): string {
  const title = `titles/${any(TITLES)}`;
  // The end of the feed, where mirrors are most of the time.
  const tail = `changes?since=${Math.floor(Date.now() / 1000) - 5}`;
  return `/api/v1/${any(['me', 'me', 'stats', title, title, tail])}`;
}

/** @returns one of several, by chance */
function any<Item>(items: readonly Item[]): Item {
  return items[Math.floor(Math.random() * items.length)] as Item;
}
