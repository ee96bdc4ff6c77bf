import { setTimeout as delay } from 'node:timers/promises';
import { createKey } from '../../../../src/keys/keys.js';
import { newKey } from '../../../support/keys/new-key.js';
import { runCommand } from '../../../support/programs/command.js';
import { UNLIMITED, type Deployment } from '../deployment.js';
import type { DeveloperChange, History, KeyChange, Outcome } from '../history.js';
import { any } from './calls.js';

/** A key that calls are made with. */
export interface KnownKey {
  readonly key: string;
  readonly prefix: string;
  readonly developer: number;
}

/** Keys of each developer in the beginning. */
const KEYS_EACH = 2;

/** Keys that have ended and that are still tried, the newest ones. */
const MOST_ENDED = 40;

/** Calls with a key right after a change of it, and the pause after them in milliseconds. */
const CALLS_AFTER_CHANGE = 3;
const PAUSE_MS = 900;

/** The keys of a run, and the operator who creates, rolls, revokes, suspends and reinstates them by commands. */
export class Keyring {
  active: KnownKey[] = [];
  ended: KnownKey[] = [];
  readonly #suspended = new Set<number>();
  readonly #developers: number[] = [];

  constructor(
    private readonly deployment: Deployment,
    private readonly history: History,
  ) {}

  /** Creates developers and their first keys. */
  async open(developers: number): Promise<void> {
    for (let i = 0; i < developers; i += 1) {
      const first = await this.newKey();
      const { developer } = first;
      const second = await createKey(this.deployment.db, { developerId: developer, planId: UNLIMITED });
      const keys = [first, { key: second.key, prefix: second.prefix, developer }];
      this.active.push(...keys);
      for (const { prefix } of keys)
        this.history.note({ kind: 'key', act: 'create', key: prefix, developer, outcome: 'applied' });
      this.#developers.push(developer);
    }
  }

  /** Creates a developer with a key that nobody changes. */
  async newKey(): Promise<KnownKey> {
    const { key, prefix, developerId } = await newKey(this.deployment.db, { planId: UNLIMITED });
    return { key, prefix, developer: developerId };
  }

  /** Changes one key or developer after the other. @param call - calls with a key whose state has just changed */
  async churn(call: (key: KnownKey) => Promise<void>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const changed = await this.#changeOne();
      if (changed) await Promise.all(Array.from({ length: CALLS_AFTER_CHANGE }, () => call(changed)));
      await delay(PAUSE_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  /** @returns a key whose state has changed */
  async #changeOne(): Promise<KnownKey | undefined> {
    const developer = any(this.#developers);
    const own = this.active.filter((key) => key.developer === developer);
    if (own.length < KEYS_EACH) return this.#create(developer);
    const key = any(own);
    // A developer who is suspended is soon reinstated.
    if (this.#suspended.has(developer)) return this.#changeDeveloper(key, 'reinstate');
    const chance = Math.random();
    if (chance < 0.2) return this.#changeDeveloper(key, 'suspend');
    if (chance < 0.5) return this.#create(developer);
    return chance < 0.75 ? this.#roll(key) : this.#revoke(key);
  }

  async #create(developer: number): Promise<KnownKey | undefined> {
    const create = ['keys', 'create', '--developer', String(developer), '--plan', UNLIMITED];
    const { document, ...change } = await this.#run(...create);
    return document && this.#noteNew(document, developer, change);
  }

  async #roll(key: KnownKey): Promise<KnownKey> {
    const { document, ...change } = await this.#run('keys', 'roll', key.prefix, '--overlap', 'now');
    this.#noteEnd(key, change);
    // The successor is active at the same moment as the other key is not.
    if (document) this.#noteNew(document, key.developer, { ...change, outcome: 'applied' });
    return key;
  }

  async #revoke(key: KnownKey): Promise<KnownKey> {
    this.#noteEnd(key, await this.#run('keys', 'revoke', key.prefix));
    return key;
  }

  async #changeDeveloper(key: KnownKey, act: DeveloperChange['act']): Promise<KnownKey> {
    const { developer } = key;
    const { start, end, outcome } = await this.#run('developers', act, String(developer));
    this.history.record({ kind: 'developer', act, developer, outcome, start, end });
    // After a failure it is repeated, or undone.
    if (act === 'suspend') this.#suspended.add(developer);
    else if (outcome !== 'unknown') this.#suspended.delete(developer);
    return key;
  }

  #noteNew(
    { key, key_prefix: prefix }: KeyDocument,
    developer: number,
    times: Pick<KeyChange, 'start' | 'end' | 'outcome'>,
  ): KnownKey {
    const known = { key, prefix, developer };
    this.history.record({ kind: 'key', act: 'create', key: prefix, developer, ...times });
    this.active.push(known);
    return known;
  }

  #noteEnd(key: KnownKey, { start, end, outcome }: Pick<KeyChange, 'start' | 'end' | 'outcome'>): void {
    const { prefix, developer } = key;
    this.history.record({ kind: 'key', act: 'end', key: prefix, developer, outcome, start, end });
    // Otherwise it stays among the active ones, and is ended another time.
    if (outcome === 'unknown') return;
    this.active = this.active.filter((one) => one !== key);
    this.ended = [...this.ended, key].slice(-MOST_ENDED);
  }

  /** Runs a command as an operator does. */
  async #run(
    ...args: readonly string[]
  ): Promise<{ start: number; end: number; outcome: Outcome; document: KeyDocument | undefined }> {
    const start = this.history.now();
    const { code, stdout } = await runCommand([...args, '--json'], this.deployment.environment);
    const end = this.history.now();
    if (code !== 0) return { start, end, outcome: 'unknown', document: undefined };
    return { start, end, outcome: 'applied', document: JSON.parse(stdout) as KeyDocument };
  }
}

/** What matters of the output of a command that creates a key. */
interface KeyDocument {
  readonly key: string;
  readonly key_prefix: string;
}
