import calculateSlot from 'cluster-key-slot';
import { Redis } from 'ioredis';
import { OperatorError } from '../../errors.js';
import { shareWhilePending } from '../async/share-while-pending.js';
import { newSession, RedisServer } from './server.js';
import { readSlots, SLOTS, type SlotRange } from './slots.js';
import { clientOptions, type NoServer, type Topology } from './topology.js';

/** The reply of a server outside any cluster. */
const NO_CLUSTER = /cluster support disabled|unknown command/i;

/** A slot, and the session that began when it came to its owner. */
interface Slot {
  readonly owner: RedisServer | NoServer;
  readonly session: number;
}

/**
 * The masters of a Redis Cluster, with a connection to each.
 *
 * ioredis has a client for clusters too. But it never queries the named nodes again while it has other addresses, and
 * skips nodes without an endpoint. An unexpected reply to CLUSTER SLOTS ends the process or fills its memory.
 */
export class ClusterTopology implements Topology {
  readonly #noServer: NoServer = {
    name: 'unassigned',
    state: 'connecting',
    reason: undefined,
    session: 0,
    tend: () => Promise.resolve(),
  };
  #slots = Array<Slot>(SLOTS).fill({ owner: this.#noServer, session: 0 });
  /** The masters, by id and address: at another address, a node needs another connection. */
  #servers = new Map<string, RedisServer>();
  #isClosed = false;

  /**
   * Begins to connect.
   *
   * @param named - the URLs of nodes, of which one must be reachable
   */
  constructor(
    private readonly named: readonly string[],
    private readonly timeoutMs: number,
    private readonly onChange: () => void,
  ) {
    void this.refresh();
  }

  get shards(): readonly (RedisServer | NoServer)[] {
    return [...new Set(this.#slots.map(({ owner }) => owner))];
  }

  slotOf(key: string): number {
    return calculateSlot(key);
  }

  serverOf(slot: number): RedisServer | NoServer {
    return this.#slots[slot]?.owner ?? this.#noServer;
  }

  sessionOf(slot: number): number {
    return Math.max(this.serverOf(slot).session, this.#slots[slot]?.session ?? 0);
  }

  refusalOf(reason: unknown): OperatorError | undefined {
    if (!NO_CLUSTER.test(String(reason))) return undefined;
    return new OperatorError('The Redis named by REDIS_URL is no Redis Cluster.', {
      advice: 'Set REDIS_URL to redis://host:port, or rediss for TLS.',
      cause: reason,
    });
  }

  close(): void {
    this.#isClosed = true;
    for (const { client } of this.#servers.values()) client.disconnect();
  }

  /** Reads the slots from a master in use; if none answers, from a named node. */
  readonly refresh = shareWhilePending(async () => {
    const inUse = [...this.#servers.values()].filter(({ state }) => state === 'up');
    const failures: unknown[] = [];
    for (const node of [...fromRandom(inUse.map(({ client }) => client)), ...fromRandom(this.named)]) {
      if (this.#isClosed) return;
      try {
        this.#assign(await readSlots(node, this.timeoutMs));
        return;
      } catch (error) {
        failures.push(error);
      }
    }
    this.#lose(failures.find((failure) => this.refusalOf(failure)) ?? failures.at(-1));
  });

  #assign(ranges: readonly SlotRange[]): void {
    if (this.#isClosed) return;
    const servers = new Map<string, RedisServer>();
    const session = newSession();
    const slots = Array<Slot>(SLOTS).fill({ owner: this.#noServer, session });
    for (const { first, last, id, address } of ranges) {
      const place = `${id} ${address}`;
      const owner = servers.get(place) ?? this.#servers.get(place) ?? this.#open(id, address);
      servers.set(place, owner);
      slots.fill({ owner, session }, first, last + 1);
    }
    for (const [place, { client }] of this.#servers) if (!servers.has(place)) client.disconnect();
    this.#servers = servers;
    this.#slots = slots.map((slot, i) => (this.#slots[i]?.owner === slot.owner ? this.#slots[i] : slot));
    this.#lose(new Error('no node has these slots'));
  }

  /** @param reason - why slots have no owner, if some have none */
  #lose(reason: unknown): void {
    Object.assign(this.#noServer, { state: 'lost', reason });
    this.onChange();
  }

  /** Connects with the user, the password and the use of TLS of the named nodes. */
  #open(id: string, address: string): RedisServer {
    const url = new URL(this.named[0] ?? '');
    url.host = address;
    const probeKey = (i: number): string => `catalog:probe:${i}`;
    const probeKeys = (): string[] => {
      let i = 0;
      while (i < 10 * SLOTS && this.serverOf(this.slotOf(probeKey(i))) !== server) i += 1;
      return [probeKey(i)];
    };
    const client = new Redis(url.href, clientOptions(this.timeoutMs));
    const server = new RedisServer(id, client, probeKeys, this.timeoutMs, this.onChange);
    return server;
  }
}

/** Begins a list anywhere: a node that is cut off from the others has outdated slots, and must not always be the first. */
function fromRandom<T>(list: readonly T[]): readonly T[] {
  const start = Math.floor(Math.random() * list.length);
  return [...list.slice(start), ...list.slice(0, start)];
}
