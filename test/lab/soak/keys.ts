import { setTimeout as delay } from 'node:timers/promises';
import { runCommand } from '../../support/programs/command.js';
import type { World } from '../../support/world.js';
import type { History } from './history.js';

/** A key that calls are made with. */
export interface KnownKey {
  readonly key: string;
  readonly prefix: string;
  readonly developerId: number;
}

/** Keys of each developer in the beginning. */
const KEYS_EACH = 2;

/** Keys that have ended and that are still tried, the newest ones. */
const MOST_ENDED = 40;

/** Calls with a key right after a change of it, and the pause after them in milliseconds. */
const CALLS_AFTER_CHANGE = 3;
const PAUSE_MS = 900;

/** What decides whether a key is accepted, by the names that the history has for it. */
export function subjectsOf({ prefix, developerId }: KnownKey): readonly string[] {
  return [prefix, `developer ${developerId}`];
}

/** The keys of a run, and the operator who creates, rolls, revokes, suspends and reinstates them by commands. */
export class Keyring {
  active: KnownKey[] = [];
  ended: KnownKey[] = [];
  readonly #suspended = new Set<number>();

  constructor(
    private readonly world: World,
    private readonly history: History,
  ) {}

  /** Creates developers and their first keys. */
  async open(developers: number): Promise<void> {
    for (let i = 0; i < developers * KEYS_EACH; i += 1) {
      const developerId = i % KEYS_EACH === 0 ? undefined : this.active.at(-1)?.developerId;
      const key = await this.world.newKey(developerId === undefined ? {} : { developerId });
      this.active.push(key);
      for (const subject of subjectsOf(key)) {
        this.history.record({ kind: 'change', subject, isRefused: false, isApplied: true });
      }
    }
  }

  /** Changes one key or developer after the other. @param call - calls with a key whose state has just changed */
  async churn(call: (key: KnownKey) => Promise<void>, signal: AbortSignal): Promise<void> {
    const developers = [...new Set(this.active.map(({ developerId }) => developerId))];
    for (let turn = 0; !signal.aborted; turn += 1) {
      const key = await this.#changeOne(developers[turn % developers.length] ?? 0);
      if (key) await Promise.all(Array.from({ length: CALLS_AFTER_CHANGE }, () => call(key)));
      await delay(PAUSE_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  /** @returns a key whose state has changed */
  async #changeOne(developerId: number): Promise<KnownKey | undefined> {
    const own = this.active.filter((key) => key.developerId === developerId);
    const key = own[Math.floor(Math.random() * own.length)];
    const chance = Math.random();
    // A developer who is suspended is soon reinstated.
    if (this.#suspended.has(developerId)) await this.#changeDeveloper(developerId, 'reinstate');
    else if (key === undefined || own.length < KEYS_EACH || chance < 0.3) return this.#create(developerId);
    else if (chance < 0.5) await this.#changeDeveloper(developerId, 'suspend');
    else await (chance < 0.75 ? this.#end(key, 'roll', '--overlap', 'now') : this.#end(key, 'revoke'));
    return key;
  }

  async #create(developerId: number): Promise<KnownKey | undefined> {
    const start = this.history.now();
    const created = await this.#run('keys', 'create', '--developer', String(developerId), '--plan', 'unlimited');
    return created && this.#add(created, developerId, start);
  }

  #add({ key, key_prefix: prefix }: KeyDocument, developerId: number, start: number): KnownKey {
    this.history.record({ kind: 'change', subject: prefix, isRefused: false, isApplied: true }, start);
    const known = { key, prefix, developerId };
    this.active.push(known);
    return known;
  }

  async #end(key: KnownKey, act: string, ...options: readonly string[]): Promise<void> {
    const start = this.history.now();
    const ended = await this.#run('keys', act, key.prefix, ...options);
    this.history.record(
      { kind: 'change', subject: key.prefix, isRefused: true, isApplied: ended !== undefined },
      start,
    );
    // Otherwise it stays among the active ones, and is ended another time.
    if (ended === undefined) return;
    this.active = this.active.filter((one) => one !== key);
    this.ended = [...this.ended, key].slice(-MOST_ENDED);
    // The successor is active at the same moment as the other key is not.
    if (act === 'roll') this.#add(ended, key.developerId, start);
  }

  async #changeDeveloper(developerId: number, act: 'suspend' | 'reinstate'): Promise<void> {
    const start = this.history.now();
    const isApplied = (await this.#run('developers', act, String(developerId))) !== undefined;
    const isRefused = act === 'suspend';
    this.history.record({ kind: 'change', subject: `developer ${developerId}`, isRefused, isApplied }, start);
    // After a failure it is repeated, or undone.
    if (isRefused) this.#suspended.add(developerId);
    else if (isApplied) this.#suspended.delete(developerId);
  }

  /** Runs a command as an operator does; faults of the network do not reach it. @returns undefined if it failed */
  async #run(...args: readonly string[]): Promise<KeyDocument | undefined> {
    const { code, stdout } = await runCommand([...args, '--json'], this.world.environment);
    return code === 0 ? (JSON.parse(stdout) as KeyDocument) : undefined;
  }
}

/** What matters of the output of a command that creates a key. */
interface KeyDocument {
  readonly key: string;
  readonly key_prefix: string;
}
