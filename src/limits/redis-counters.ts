import { ifAvailable, type RedisLink } from '../platform/redis.js';
import {
  ChargeBatch,
  type Account,
  type Charge,
  type ChargeReply,
  type Condition,
  type Terms,
} from './charge-batch.js';
import { CHARGE } from './charge-script.js';

/** The most accounts that one command charges, so that Redis is not held up by one. */
const MAX_ACCOUNTS = 64;

/** The client's type does not know of scripts. */
interface Scripted {
  catalogCharge(...command: readonly (string | number)[]): Promise<ChargeReply>;
}

/**
 * Counts in Redis, so that a limit holds over all server processes together.
 *
 * Requests that arrive together are charged together: what is sent to Redis and what comes back costs more than all else
 * about a short request.
 */
export class RedisCounters {
  readonly #redis: RedisLink;
  #batch: ChargeBatch | undefined;

  constructor(redis: RedisLink) {
    this.#redis = redis;
    redis.client.defineCommand('catalogCharge', { lua: CHARGE });
  }

  /**
   * Charges one request.
   *
   * @param read - makes of what became of it what the caller wants
   * @param condition - whether it held then is told to `read`
   * @returns undefined where Redis cannot tell, or not in time
   */
  async charge<T>(account: Account, read: (charge: Charge) => T, condition?: Condition): Promise<T | undefined> {
    const terms = condition && { condition, isBinding: false };
    // Without a binding condition there is none that prevents it.
    return (await this.#charge(account, read, Infinity, terms)) ?? undefined;
  }

  /**
   * Charges one request like {@link charge}, but only if a condition holds.
   *
   * @param until - bound on the wait for Redis, on the clock of `performance.now()`
   * @returns null, with nothing charged, where it does not; undefined where Redis cannot tell, or not in time
   */
  chargeIf<T>(
    condition: Condition,
    account: Account,
    read: (charge: Charge) => T,
    until = Infinity,
  ): Promise<T | null | undefined> {
    return this.#charge(account, read, until, { condition, isBinding: true });
  }

  #charge<T>(
    account: Account,
    read: (charge: Charge) => T,
    until: number,
    terms?: Terms,
  ): Promise<T | null | undefined> {
    return new Promise((resolve) => {
      this.#batchFor(until, terms).add(account, (charge) => {
        resolve(charge && read(charge));
      });
    });
  }

  /** @returns the batch that requests join until everything that has arrived by now is dealt with */
  #batchFor(until: number, terms?: Terms): ChargeBatch {
    // One that has less time left than a command may take must not cost the others theirs.
    const isHurried = until < performance.now() + this.#redis.timeoutMs;
    const current = this.#batch;
    if (!isHurried && current?.isUnder(terms) && current.size < MAX_ACCOUNTS) return current;
    const batch = new ChargeBatch(terms, until);
    if (!isHurried) this.#batch = batch;
    setImmediate(() => void this.#send(batch));
    return batch;
  }

  async #send(batch: ChargeBatch): Promise<void> {
    if (this.#batch === batch) this.#batch = undefined;
    const { command, until } = batch;
    const run = this.#redis.run((client) => (client as unknown as Scripted).catalogCharge(...command), until);
    batch.settle(await ifAvailable(run));
  }
}
