import { createClient } from '../../../../src/client/client.js';
import { follow } from '../../../../src/client/follow.js';
import { retryPolicy } from '../../../../src/client/retry.js';
import { eventually } from '../../../support/eventually.js';
import type { History, MirrorStep } from '../history.js';

const NAME = 'a follower';

/** A follower of the feed, whose entries go into the history as they arrive. */
export class Follower {
  #stop = new AbortController();
  #running: Promise<unknown> = Promise.resolve();
  /** The stamp of the last entry that arrived. */
  #last = '';

  /** @param since - the position that it begins from */
  constructor(
    private readonly history: History,
    private readonly url: string,
    private readonly key: string,
    private since = Math.floor(Date.now() / 1000) - 1,
  ) {
    this.#note({ did: 'begin', since });
    this.#run();
  }

  /** Ends it wherever it is, and starts it again from its position. */
  async restart(): Promise<void> {
    await this.kill();
    this.#stop = new AbortController();
    this.#note({ did: 'resume', since: this.since });
    this.#run();
  }

  /** Ends it once it has received the newest entry. */
  async finish(newest: string): Promise<void> {
    await eventually('the follower has everything', () => this.#last >= newest).catch((error: unknown) =>
      this.#note({ did: 'fail', why: String(error) }),
    );
    await this.kill();
  }

  async kill(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  #run(): void {
    this.#running = follow({
      fetchPage: createClient({ baseUrl: this.url, key: this.key }),
      since: this.since,
      once: false,
      intervalMs: 1_000,
      retryPolicy: retryPolicy(false),
      signal: this.#stop.signal,
      store: ({ data: entries, meta }) => {
        this.#last = entries.at(-1)?.updated_at ?? this.#last;
        if (entries.length > 0) this.#note({ did: 'receive', entries });
        this.since = meta.next_since;
        return Promise.resolve();
      },
    }).catch((error: unknown) => this.#note({ did: 'fail', why: String(error) }));
  }

  #note(step: MirrorStep['step']): void {
    this.history.note({ kind: 'mirror', mirror: NAME, step });
  }
}
