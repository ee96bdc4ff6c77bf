import { LRUCache } from 'lru-cache';
import { generateToken, hashToken } from '../../accounts/tokens.js';

/** Idle limit of a session, in minutes. */
export const IDLE_MINUTES = 60;

/** Absolute limit of a session, in hours. */
export const ABSOLUTE_HOURS = 8;

/** The maximum number of sessions of a server. The one that was unused for longest is removed first. */
const MAX_SESSIONS = 100;

/**
 * The sessions of operators, in the memory of this process: they must outlast an outage of the database, whose state
 * the pages show. They end when the server stops.
 */
export class OperatorSessions {
  /** When each was signed in, by the hash of its token. */
  readonly #signedInAt: LRUCache<string, number>;

  /** @param now - in milliseconds */
  constructor(private readonly now: () => number = () => performance.now()) {
    this.#signedInAt = new LRUCache({
      max: MAX_SESSIONS,
      ttl: IDLE_MINUTES * 60_000,
      ttlResolution: 0,
      updateAgeOnGet: true,
      perf: { now },
    });
  }

  /** Starts a session. @returns its token, for the browser's cookie; returned only here */
  start(): string {
    const { token, hash } = generateToken();
    this.#signedInAt.set(hash.toString('hex'), this.now());
    return token;
  }

  /** Whether a token is that of a session that has not ended. */
  has(token: string | undefined): boolean {
    const id = hashToken(token)?.toString('hex');
    const signedInAt = id === undefined ? undefined : this.#signedInAt.get(id);
    return signedInAt !== undefined && this.now() - signedInAt < ABSOLUTE_HOURS * 3_600_000;
  }

  /** Ends the session of a token, if there is one. */
  end(token: string | undefined): void {
    const id = hashToken(token)?.toString('hex');
    if (id !== undefined) this.#signedInAt.delete(id);
  }
}
