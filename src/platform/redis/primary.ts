import { AbstractConnector } from 'ioredis';
import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { RedisAddress, RedisNode } from '../../config/redis-address.js';
import { access, DISCONNECT_TIMEOUT_MS, findPrimary, listenToSentinel, type ConnectionOptions } from './discovery.js';

/** How to connect to the one server that takes writes of all our keys. */
export interface Primary {
  readonly options: ConnectionOptions;
  /** Whether each new connection is to be led anew to the server that takes writes. */
  readonly changes: boolean;
  /** Stops listening for a change. */
  close(): void;
}

/**
 * Prepares connections to the server that takes writes.
 *
 * All our keys lie in one slot, so a Redis Cluster is to us one master that has to be found, as one behind Sentinels has.
 * Hence one plain connection in every case, and not the Cluster of ioredis: that one waits and sends again in silence, and
 * would take us to a promoted replica, which may have an older epoch, without a word.
 *
 * @param key - one of our keys, by which a Cluster tells the slot
 * @param onChange - told that another server takes writes than the one last found
 */
export function primaryOf(address: RedisAddress, key: string, onChange: (reason: Error) => void): Primary {
  const options = access(address.credentials, address.tls);
  if (address.kind === 'server') {
    return { options: { ...options, ...address.nodes[0], db: address.database }, changes: false, close: nothing };
  }
  /** The server last found, as long as it is not known to have been replaced. */
  let current: RedisNode | undefined;
  const target = {
    find: async () => (current = await findPrimary(address, key)),
    isCurrent: () => current !== undefined,
    tls: address.tls,
  };
  class Connector extends PrimaryConnector {
    constructor() {
      super(target);
    }
  }
  if (address.kind === 'cluster') return { options: { ...options, Connector }, changes: true, close: nothing };
  const sentinels = address.nodes.map((node) =>
    listenToSentinel(address, node, (host, port) => {
      if (current?.host !== host || current.port !== port) return;
      current = undefined;
      onChange(new Error(`${host}:${port} is not the master any more`));
    }),
  );
  return {
    options: { ...options, Connector, db: address.database },
    changes: true,
    close() {
      for (const sentinel of sentinels) sentinel.disconnect();
    },
  };
}

interface Target {
  /** Finds out where it is. */
  readonly find: () => Promise<RedisNode>;
  /** Whether what was found last still is the one. */
  readonly isCurrent: () => boolean;
  readonly tls: boolean;
}

/** Connects to a server that has to be found first. */
class PrimaryConnector extends AbstractConnector {
  #report: ((type: string, error: Error) => void) | undefined;

  constructor(private readonly target: Target) {
    super(DISCONNECT_TIMEOUT_MS);
  }

  override async connect(report: (type: string, error: Error) => void): Promise<Socket> {
    this.#report = report;
    this.connecting = true;
    const node = await this.target.find();
    // ioredis may have been told to disconnect meanwhile.
    if (this.#isGivenUp()) throw new Error('the connection was given up');
    const stream: Socket = this.target.tls ? connectTls(node) : connectPlain(node);
    stream.once('error', (error) => (this.firstError = error));
    this.stream = stream;
    return stream;
  }

  #isGivenUp(): boolean {
    return !this.connecting;
  }

  /** Asked with what INFO says, before the connection is used: whoever was asked for the way may not know the latest. */
  override check(info: { role?: string }): boolean {
    const fits = (info.role === undefined || info.role === 'master') && this.target.isCurrent();
    if (!fits) this.#report?.('error', new Error('what should be the master is not, or not any more'));
    return fits;
  }
}

function nothing(): void {
  // There is nothing to do.
}
