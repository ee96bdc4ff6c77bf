import { AbstractConnector } from 'ioredis';
import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { RedisAddress, RedisNode } from '../../config/redis-address.js';
import { access, DISCONNECT_TIMEOUT_MS, findPrimary, listenToSentinel, type ConnectionOptions } from './discovery.js';

/** How to connect to the one server that takes the writes of all our keys. */
export interface Primary {
  readonly options: ConnectionOptions;
  /** Whether each new connection must first find the server that takes writes. */
  readonly changes: boolean;
  close(): void;
}

/**
 * Prepares connections to the server that takes writes.
 *
 * All our keys lie in one slot. So a Redis Cluster is one master that must be found, as behind Sentinels. Every case
 * uses one plain connection, not the Cluster client of ioredis. That client waits and sends commands again silently. It
 * would also lead us to a promoted replica, which may have an older epoch. Nor is it the Sentinel connector of ioredis.
 * That connector asks one Sentinel after the other. It listens for a new master only once it is connected to the old one.
 *
 * @param key - one of our keys, by which a Cluster finds the slot
 * @param onChange - called when another server takes writes than the last one found
 */
export function primaryOf(address: RedisAddress, key: string, onChange: (reason: Error) => void): Primary {
  const options = access(address.credentials, address.tls);
  if (address.kind === 'server') {
    return {
      options: { ...options, ...address.nodes[0], db: address.database },
      changes: false,
      close: () => undefined,
    };
  }
  const deployment = address;
  /** The last server found, unless it is known to be replaced. */
  let current: RedisNode | undefined;

  class Connector extends AbstractConnector {
    #report: ((type: string, error: Error) => void) | undefined;

    constructor() {
      super(DISCONNECT_TIMEOUT_MS);
    }

    override async connect(report: (type: string, error: Error) => void): Promise<Socket> {
      this.#report = report;
      this.connecting = true;
      current = await findPrimary(deployment, key);
      // The link may have disconnected meanwhile.
      if (this.#isGivenUp()) throw new Error('the connection was given up');
      const stream: Socket = address.tls ? connectTls(current) : connectPlain(current);
      stream.once('error', (error) => (this.firstError = error));
      this.stream = stream;
      return stream;
    }

    #isGivenUp(): boolean {
      return !this.connecting;
    }

    /** Checks a new connection with INFO: the node that named this server may not know the latest change. */
    override check(info: { role?: string }): boolean {
      const fits = (info.role === undefined || info.role === 'master') && current !== undefined;
      if (!fits) this.#report?.('error', new Error('what should be the master is not, or not any more'));
      return fits;
    }
  }

  if (address.kind === 'cluster') return { options: { ...options, Connector }, changes: true, close: () => undefined };
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
