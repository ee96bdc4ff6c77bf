import type { Redis } from 'ioredis';
import { OperatorError } from '../../errors.js';
import { RedisServer } from './server.js';
import type { Topology } from './topology.js';

/** The reply of a cluster's node, or of a proxy before several servers, to a script with keys of two slots. */
const SHARDED = /\b(?:CROSSSLOT|CLUSTERDOWN) |\bsame slot\b/;

/** One server that has all keys, in one slot: a script may charge any developers. */
export function singleTopology(client: Redis, timeoutMs: number, onChange: () => void): Topology {
  const probeKeys = ['catalog:probe:0', 'catalog:probe:1'];
  const server = new RedisServer('redis', client, () => probeKeys, timeoutMs, onChange);
  return {
    shards: [server],
    slotOf: () => 0,
    serverOf: () => server,
    sessionOf: () => server.session,
    refresh: () => Promise.resolve(),
    refusalOf(reason) {
      if (!SHARDED.test(String(reason))) return undefined;
      return new OperatorError('The Redis named by REDIS_URL is sharded, such as a node of a Redis Cluster.', {
        advice:
          'For a cluster, set REDIS_URL to redis+cluster://host:port,host:port, or rediss+cluster for TLS, with some of its nodes. A sharding proxy is not supported.',
        cause: reason,
      });
    },
    close: () => client.disconnect(),
  };
}
