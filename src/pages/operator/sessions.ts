import { LRUCache } from 'lru-cache';
import type { VNode } from 'preact';
import { generateToken, hashToken } from '../../accounts/tokens.js';

/** Idle limit of a session, in minutes. */
export const IDLE_MINUTES = 60;

/** Absolute limit of a session, in hours. */
export const ABSOLUTE_HOURS = 8;

/** The most sessions of a server. The one that was unused for the longest time makes room. */
const MAX_SESSIONS = 100;

/** The most forms of a session whose outcome is kept. */
const MAX_FORMS = 100;

/** A browser that an operator has signed in with. */
export interface OperatorSession {
  /** In milliseconds, on the clock of the sessions. */
  readonly signedInAt: number;
  /** What the page at this address confirms, once. */
  confirmation?: { readonly address: string; readonly notice: VNode } | undefined;
  /** The address that each form has led to, by the hash of the form's token: a form that was sent twice acts once. */
  readonly forms: LRUCache<string, Promise<string>>;
}

/**
 * The sessions of operators, in the memory of this process: they must outlast an outage of the database, whose state the
 * pages show. They end when the server stops.
 */
export class OperatorSessions {
  readonly #sessions: LRUCache<string, OperatorSession>;

  /** @param now - in milliseconds */
  constructor(private readonly now: () => number = () => performance.now()) {
    this.#sessions = new LRUCache({
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
    this.#sessions.set(hash.toString('hex'), { signedInAt: this.now(), forms: new LRUCache({ max: MAX_FORMS }) });
    return token;
  }

  /** @returns the session of a token; undefined if there is none or it has ended */
  find(token: string | undefined): OperatorSession | undefined {
    const id = hashToken(token)?.toString('hex');
    const session = id === undefined ? undefined : this.#sessions.get(id);
    return session !== undefined && this.now() - session.signedInAt < ABSOLUTE_HOURS * 3_600_000 ? session : undefined;
  }

  /** Ends the session of a token, if there is one. */
  end(token: string | undefined): void {
    const id = hashToken(token)?.toString('hex');
    if (id !== undefined) this.#sessions.delete(id);
  }
}
