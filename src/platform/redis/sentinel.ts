import { SentinelConnector, type Redis, type RedisOptions, type SentinelConnectionOptions } from 'ioredis';
import { CONNECT_TIMEOUT_MS, type RedisAddress } from './topology.js';

/**
 * @param onLost - called once for each Sentinel that cannot be reached, and connection to the master
 * @returns the options of a client for the master that Sentinels name; empty for an address without Sentinels
 */
export function sentinelOptions({ url, sentinels, sentinelPassword }: RedisAddress, onLost: (error: unknown) => void) {
  if (sentinels === undefined) return {};
  const { hostname, protocol } = new URL(url);
  return {
    sentinels: [...sentinels],
    name: hostname,
    // Accepts only a master.
    enableReadyCheck: true,
    // Leaves a master that was replaced although it still answers.
    failoverDetector: true,
    Connector: guardedConnector(onLost),
    sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
    // The link tries again itself.
    sentinelRetryStrategy: () => null,
    ...(sentinelPassword !== undefined && { sentinelPassword }),
    ...(protocol === 'rediss:' && { sentinelTLS: {}, tls: {}, enableTLSForSentinelMode: true }),
  } satisfies RedisOptions;
}

/**
 * Makes ioredis' connector with listeners on the clients that wait for announcements of a failover. Without them,
 * ioredis prints each of their errors on the console.
 */
function guardedConnector(onLost: (error: unknown) => void): NonNullable<RedisOptions['Connector']> {
  return class extends SentinelConnector {
    constructor(options: unknown) {
      super(options as SentinelConnectionOptions);
      const own = this as unknown as { connectToSentinel: (endpoint: unknown, options?: object) => Redis };
      const connect = own.connectToSentinel.bind(this);
      own.connectToSentinel = (endpoint, options) => {
        const client = connect(endpoint, options);
        // Clients that look for the master get no options, and their errors are reported.
        if (options !== undefined) client.once('error', onLost).on('error', () => undefined);
        return client;
      };
    }

    /** @param info - the reply to INFO, whatever its form: an error here would end the process */
    override check(info: { role?: string } | null): boolean {
      return super.check({ role: 'unknown', ...info });
    }
  };
}
