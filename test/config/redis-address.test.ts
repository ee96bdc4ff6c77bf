import assert from 'node:assert/strict';
import { InvalidSetting } from '../../src/config/parsers.js';
import { parseRedisAddress, type RedisAddress } from '../../src/config/redis-address.js';

const NOBODY = { username: undefined, password: undefined };

/** The complaint about an address. */
function complaint(text: string): string {
  try {
    parseRedisAddress(text);
  } catch (error) {
    if (error instanceof InvalidSetting) return error.message;
    throw error;
  }
  return assert.fail(`accepted: ${text}`);
}

describe('addresses of Redis', () => {
  const server = { kind: 'server', tls: false, credentials: NOBODY, database: 0 } as const;
  const h = { host: 'h', port: 6379 };
  for (const [text, address] of [
    ['redis://h', { ...server, nodes: [h] }],
    ['redis://h:1/', { ...server, nodes: [{ host: 'h', port: 1 }] }],
    [
      'REDISS://redis.example:6380/15',
      { ...server, nodes: [{ host: 'redis.example', port: 6380 }], tls: true, database: 15 },
    ],
    ['redis://[::1]:7000/2', { ...server, nodes: [{ host: '::1', port: 7000 }], database: 2 }],
    ['redis://[2001:db8::1]', { ...server, nodes: [{ host: '2001:db8::1', port: 6379 }] }],
    ['redis://:pw@h', { ...server, nodes: [h], credentials: { username: undefined, password: 'pw' } }],
    ['redis://u:p%40%2F%3A%25%23@h', { ...server, nodes: [h], credentials: { username: 'u', password: 'p@/:%#' } }],
    ['redis://u%20v:p:w@d@h', { ...server, nodes: [h], credentials: { username: 'u v', password: 'p:w@d' } }],
    ['redis://u@h', { ...server, nodes: [h], credentials: { username: 'u', password: '' } }],
    ['redis://@h', { ...server, nodes: [h] }],
    ['redis://h:65535', { ...server, nodes: [{ host: 'h', port: 65_535 }] }],
    ['redis://h/', { ...server, nodes: [h] }],
    ['redis://h/12345', { ...server, nodes: [h], database: 12_345 }],
    ['redis://a_b-c.d', { ...server, nodes: [{ host: 'a_b-c.d', port: 6379 }] }],
  ] as const satisfies readonly (readonly [string, RedisAddress])[]) {
    it(`of one server: ${text}`, () => {
      assert.deepEqual(parseRedisAddress(text), address);
    });
  }

  const sentinel = {
    kind: 'sentinel',
    tls: false,
    nodes: [
      { host: 'a', port: 26379 },
      { host: 'b', port: 1 },
    ],
    masterName: 'mymaster',
    database: 0,
    credentials: NOBODY,
    sentinelCredentials: NOBODY,
  } as const;
  for (const [text, address] of [
    ['redis+sentinel://a,b:1/mymaster', sentinel],
    ['redis+sentinel://a,b:1/mymaster/', sentinel],
    ['redis-sentinel://a,b:1/mymaster/3', { ...sentinel, database: 3 }],
    ['redis-sentinel://a,b:1#mymaster', sentinel],
    ['redis-sentinel://a,b:1/3#mymaster', { ...sentinel, database: 3 }],
    ['redis-sentinel://a,b:1/3?sentinelMasterId=mymaster', { ...sentinel, database: 3 }],
    ['redis-sentinel://a,b:1/3#7', { ...sentinel, masterName: '7', database: 3 }],
    ['redis+sentinel://a,b:1/master7', { ...sentinel, masterName: 'master7' }],
    ['redis+sentinel://a,b:1/7master', { ...sentinel, masterName: '7master' }],
    ['REDIS+SENTINEL://a,b:1/mymaster', sentinel],
    ['redis+sentinel://a,b:1/my%2Fmaster', { ...sentinel, masterName: 'my/master' }],
    [
      'rediss+sentinel://u:p%40@[::1]/mymaster?sentinel_username=s&sentinel_password=t%26',
      {
        ...sentinel,
        tls: true,
        nodes: [{ host: '::1', port: 26379 }],
        credentials: { username: 'u', password: 'p@' },
        sentinelCredentials: { username: 's', password: 't&' },
      },
    ],
  ] as const satisfies readonly (readonly [string, RedisAddress])[]) {
    it(`of Sentinels: ${text}`, () => {
      assert.deepEqual(parseRedisAddress(text), address);
    });
  }

  const cluster = { kind: 'cluster', tls: false, nodes: [h], credentials: NOBODY } as const;
  for (const [text, address] of [
    ['redis+cluster://h', cluster],
    ['redis-cluster://h:6379/0', cluster],
    ['rediss+cluster://h/', { ...cluster, tls: true }],
    [
      'rediss-cluster://:pw@10.0.0.1:7000,[::1]:7001,h',
      {
        ...cluster,
        tls: true,
        nodes: [{ host: '10.0.0.1', port: 7000 }, { host: '::1', port: 7001 }, h],
        credentials: { username: undefined, password: 'pw' },
      },
    ],
  ] as const satisfies readonly (readonly [string, RedisAddress])[]) {
    it(`of a Cluster: ${text}`, () => {
      assert.deepEqual(parseRedisAddress(text), address);
    });
  }

  for (const [text, reason] of [
    ['h:6379', /^must be a URL such as redis:.*redis\+sentinel:.*redis\+cluster:/],
    ['http://h', /^must be a URL such as/],
    ['redis:/h', /^must be a URL such as/],
    ['redis+raft://h', /^must be a URL such as/],
    ['xredis://h', /^must be a URL such as/],
    ['redis://h/0#a\nb', /^must be a URL such as/],
    ['redis://h@i@', /hosts are names/],
    ['redis://h:1:2', /hosts are names/],
    ['redis://h i', /hosts are names/],
    ['redis://h:123456', /hosts are names/],
    ['redis://[::1', /hosts are names/],
    ['redis://[::1]x', /hosts are names/],
    ['redis://', /hosts are names/],
    ['redis+cluster://a,,b', /hosts are names/],
    ['redis://h:0', /a port from 1 to 65535/],
    ['redis+cluster://h,i:65536', /a port from 1 to 65535/],
    ['redis://::1', /\[IPv6\]/],
    ['redis://[1.2.3.4]', /\[IPv6\]/],
    ['redis://:hunter2/x@h:1', /in a password \/ \? # % are written %2F %3F %23 %25/],
    ['redis://:hunter2#x@h:1', /are written %3F %23/],
    ['redis://:hunter2%zz@h', /% is written %25/],
    ['redis://h/hunter2', /nothing but the number of a database/],
    ['redis://h/1/2', /nothing but the number of a database/],
    ['redis://h?password=hunter2', /without parameters/],
    ['redis://a,b', /must be redis\+sentinel:\/\/… or redis\+cluster:\/\/… where/],
    ['redis+cluster://h/1', /a Redis Cluster has the database 0 alone/],
    ['redis+cluster://h?x=hunter2', /without parameters/],
    ['redis+sentinel://h', /names the master/],
    ['redis+sentinel://h/0', /names the master/],
    ['redis+sentinel://h/12', /names the master/],
    ['redis+sentinel://h/mymaster/1/2', /nothing but the number of a database/],
    ['redis://h/123456', /nothing but the number of a database/],
    ['redis+sentinel://h/mymaster/x', /nothing but the number of a database/],
    ['redis+sentinel://h/x#mymaster', /nothing but the number of a database/],
    ['redis+sentinel://h/mymaster?password=hunter2', /no other parameters than sentinelMasterId,/],
  ] as const) {
    it(`are refused with the reason: ${text}`, () => {
      const message = complaint(text);
      assert.match(message, reason);
      assert.match(message, /^must be /);
      assert.doesNotMatch(message, /hunter2/);
    });
  }
});
