import assert from 'node:assert/strict';
import { ConfigError, readConfig } from '../../src/config/config.js';
import { SETTINGS } from '../../src/config/settings.js';

const DEFAULTS = {
  host: '127.0.0.1',
  port: 8080,
  databaseUrl: undefined,
  databaseReadUrl: undefined,
  databasePoolSize: 10,
  redisUrl: undefined,
  redisSentinels: undefined,
  redisSentinelPassword: undefined,
  publicUrl: undefined,
  oidcIssuer: undefined,
  oidcClientId: undefined,
  oidcClientSecret: undefined,
  oidcSignUp: false,
  trustedProxies: 0,
  site: true,
  securityContact: undefined,
  workers: 1,
  drainSeconds: 5,
  dataDir: undefined,
  metricsAddress: { host: '127.0.0.1', port: 9464, isRequired: false },
  logLevel: 'info',
};

/** The message about settings that cannot be used. */
function complaint(environment: Record<string, string>): string {
  try {
    readConfig(environment);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return assert.fail(`accepted: ${JSON.stringify(environment)}`);
}

describe('settings', () => {
  it('have defaults, and take an empty or blank value as not set', () => {
    assert.deepEqual(readConfig({}), DEFAULTS);
    assert.deepEqual(readConfig(Object.fromEntries(Object.values(SETTINGS).map(({ name }) => [name, '']))), DEFAULTS);
    assert.deepEqual(
      readConfig(Object.fromEntries(Object.values(SETTINGS).map(({ name }) => [name, ' \t ']))),
      DEFAULTS,
    );
    assert.deepEqual(readConfig({ UNKNOWN: 'x', port: '1', PORT: undefined }), DEFAULTS);
  });

  it('are read, without blanks around them', () => {
    const config = readConfig({
      HOST: ' 0.0.0.0 ',
      PORT: '0',
      DATABASE_URL: ' postgresql://u:p%40@db.example:5432/catalog?sslmode=require ',
      DATABASE_READ_URL: 'postgres://replica/catalog',
      DATABASE_POOL_SIZE: '1000',
      REDIS_URL: ' REDISS://:p@%2F@mymaster/1 ',
      REDIS_SENTINELS: 'a:1, b.example,[::1]:26380',
      REDIS_SENTINEL_PASSWORD: 's&t',
      PUBLIC_URL: ' https://Catalog.example:8443/ ',
      OIDC_ISSUER: 'https://id.example/realm/',
      OIDC_CLIENT_ID: 'catalog',
      OIDC_CLIENT_SECRET: 's e c',
      OIDC_SIGN_UP: 'on',
      TRUST_PROXY: '2',
      SITE: 'off',
      SECURITY_CONTACT: ' mailto:security@catalog.example ',
      WORKERS: '128',
      DRAIN_SECONDS: '600',
      DATA_DIR: './some where',
      METRICS_ADDRESS: ' 0.0.0.0:0 ',
      LOG_LEVEL: 'silent',
    });
    assert.deepEqual(config, {
      host: '0.0.0.0',
      port: 0,
      databaseUrl: 'postgresql://u:p%40@db.example:5432/catalog?sslmode=require',
      databaseReadUrl: 'postgres://replica/catalog',
      databasePoolSize: 1000,
      redisUrl: 'rediss://:p%40%2F@mymaster/1',
      redisSentinels: [
        { host: 'a', port: 1 },
        { host: 'b.example', port: 26379 },
        { host: '::1', port: 26380 },
      ],
      redisSentinelPassword: 's&t',
      publicUrl: 'https://catalog.example:8443',
      oidcIssuer: 'https://id.example/realm/',
      oidcClientId: 'catalog',
      oidcClientSecret: 's e c',
      oidcSignUp: true,
      trustedProxies: 2,
      site: false,
      securityContact: 'mailto:security@catalog.example',
      workers: 128,
      drainSeconds: 600,
      dataDir: './some where',
      metricsAddress: { host: '0.0.0.0', port: 0, isRequired: true },
      logLevel: 'silent',
    });
    assert.ok(Object.isFrozen(config));
  });

  it('name a replica only beside its primary', () => {
    assert.equal(
      complaint({ DATABASE_READ_URL: 'postgres://u:s3cret@replica/catalog' }),
      'These settings cannot be used:\n  DATABASE_READ_URL must be a replica of DATABASE_URL, which is not set',
    );
  });

  it('name Sentinels only beside the name of their master', () => {
    assert.match(
      complaint({ REDIS_SENTINELS: 'h' }),
      /^[^\n]+\n {2}REDIS_SENTINELS needs REDIS_URL with the name of the master/,
    );
  });

  it('allow several workers only where they share their limits', () => {
    const redis = { REDIS_URL: 'redis://h' };
    assert.equal(readConfig({ WORKERS: '1' }).workers, 1);
    assert.equal(readConfig({ WORKERS: '2', ...redis }).workers, 2);
    for (const url of [undefined, '', ' ']) {
      assert.equal(
        complaint({ WORKERS: '2', ...(url !== undefined && { REDIS_URL: url }) }),
        'These settings cannot be used:\n' +
          '  WORKERS must be 1 without REDIS_URL: each process would count limits for itself, and allow that many times the plan',
      );
    }
    for (const value of ['0', '129', '-1', '1.5', 'auto', '1e2']) {
      assert.equal(
        complaint({ WORKERS: value, ...redis }),
        `These settings cannot be used:\n  WORKERS must be a whole number from 1 to 128, not "${value}"`,
      );
    }
  });

  describe('for OpenID Connect', () => {
    const OIDC = {
      OIDC_ISSUER: 'https://id.example',
      OIDC_CLIENT_ID: 'catalog',
      OIDC_CLIENT_SECRET: 'hunter2',
      PUBLIC_URL: 'https://catalog.example',
    };

    it('are taken all together or not at all', () => {
      assert.equal(readConfig(OIDC).oidcIssuer, 'https://id.example');
      assert.equal(readConfig({ PUBLIC_URL: OIDC.PUBLIC_URL }).publicUrl, 'https://catalog.example');
      for (const name of Object.keys(OIDC)) {
        assert.equal(
          complaint({ ...OIDC, [name]: ' ' }),
          `These settings cannot be used:\n  ${name} must be set: signing in by OpenID Connect needs it`,
        );
      }
    });

    it('are no use without a provider: who may sign up must not be asked for in vain', () => {
      for (const OIDC_SIGN_UP of ['on', ' on ']) {
        assert.equal(complaint({ OIDC_SIGN_UP }).split('\n').length, 1 + Object.keys(OIDC).length);
      }
    });

    it('are checked', () => {
      for (const OIDC_ISSUER of ['https://id.example/a/b', 'http://localhost:3000', 'http://127.0.0.1:1/x']) {
        assert.equal(readConfig({ ...OIDC, OIDC_ISSUER }).oidcIssuer, OIDC_ISSUER);
      }
      for (const OIDC_ISSUER of [
        'id.example',
        'http://id.example',
        'https://u:hunter2@h',
        'https://h?a',
        'https://h#',
      ]) {
        const message = complaint({ ...OIDC, OIDC_ISSUER });
        assert.match(message, /^[^\n]+\n {2}OIDC_ISSUER must be the https:[^\n]+$/);
        assert.ok(!message.includes('hunter2'));
      }
      for (const OIDC_SIGN_UP of ['yes', 'ON', '1']) {
        assert.match(complaint({ ...OIDC, OIDC_SIGN_UP }), /OIDC_SIGN_UP must be on or off, not "/);
      }
    });
  });

  it('are refused with an error of a kind of its own', () => {
    assert.throws(() => readConfig({ PORT: 'x' }), { name: 'ConfigError' });
  });

  it('are refused all at once, each by its name', () => {
    assert.equal(
      complaint({ HOST: 'a b', PORT: '65536', DATABASE_URL: 'mysql://x', DATABASE_POOL_SIZE: '1', LOG_LEVEL: 'INFO' }),
      [
        'These settings cannot be used:',
        '  HOST must be an address or a host name such as 127.0.0.1, not "a b"',
        '  PORT must be a whole number from 0 to 65535, not "65536"',
        '  DATABASE_URL must be a URL such as postgres://user:password@host:5432/database',
        '  DATABASE_POOL_SIZE must be a whole number from 2 to 1000, not "1"',
        '  LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent, not "INFO"',
      ].join('\n'),
    );
  });

  for (const [name, good, bad] of [
    [
      'HOST',
      ['localhost', '::', '::1', 'fe80::1', 'catalog.example', '10.0.0.1'],
      ['a/b', 'http://x', '[::1]', 'a,b', 'a\nb'],
    ],
    ['PORT', ['0', '1', '65535', '0080'], ['-1', '65536', '80.5', '1e3', '0x50', 'http', '8080 8081', '９']],
    ['DRAIN_SECONDS', ['0', '5', '600'], ['-1', '601', '1.5', '5s', 'off']],
    ['DATABASE_POOL_SIZE', ['2', '1000'], ['0', '1', '1001', 'many', '1e2']],
    [
      'DATABASE_URL',
      ['postgres://h/d', 'postgresql://u@h:1/d'],
      ['h', '/var/run', 'http://h/d', 'xpostgres://h/d', 'postgres//h', 'host=h dbname=d'],
    ],
    [
      'REDIS_URL',
      ['redis://h', 'redis://h:1/2', 'rediss://u:p@h', 'redis://[::1]:1'],
      [
        ...['h', 'h:6379', 'http://h', 'redis:/h', 'redis://', 'redis://a,b:1', 'redis://h:65536', 'redis://h/x'],
        ...[
          'redis://h/1/2',
          'redis://h?db=1',
          'redis://h#a',
          'redis://:%zz@h',
          'redis://:a/b@h',
          'redis+sentinel://h/m',
        ],
      ],
    ],
    ['REDIS_SENTINELS', [], ['h:0', 'h:65536', 'h:x', 'a,,b', 'redis://h:1', '::1', 'u@h', 'a b']],
    [
      'PUBLIC_URL',
      ['https://h', 'https://h/', 'https://h:8443', 'http://localhost:8080', 'http://127.10.0.1', 'http://[::1]:1'],
      [
        'h',
        'h:8080',
        'http://h',
        'http://10.0.0.1',
        'http://localhost.example',
        'http://notlocalhost',
        'http://127.0.0.1.example',
        'ftp://localhost',
        'https://h/path',
        'https://h/?a',
        'https://h?',
        'https://h#a',
        'https://u:p@h',
        'https://:p@h',
      ],
    ],
    ['TRUST_PROXY', ['off', '1', '9'], ['0', '10', 'on', 'true', '-1', '1.5', '10.0.0.1']],
    ['SITE', ['on', 'off'], ['On', 'true', '1', 'no']],
    [
      'SECURITY_CONTACT',
      ['mailto:a@b.example', 'https://h/report'],
      ['a@b.example', 'mailto:a', 'http://h', 'https://', 'https://h/a b', 'https://h\nContact: x', 'tel:+1'],
    ],
    [
      'METRICS_ADDRESS',
      ['off', ':0', ':9464', '[::1]:9464', 'localhost:1', '10.0.0.1:65535', '127.0.0.1:9464'],
      [
        'on',
        '9464',
        '::1:9464',
        '[::1]',
        '127.0.0.1',
        '127.0.0.1:',
        'h:65536',
        'h:x',
        'http://h:1',
        'a b:1',
        'h:1/metrics',
      ],
    ],
    [
      'LOG_LEVEL',
      ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
      ['Info', 'verbose', '30', 'toString', '__proto__'],
    ],
  ] as const) {
    it(`are checked: ${name}`, () => {
      for (const value of good) readConfig({ [name]: value });
      for (const value of bad) {
        const lines = complaint({ [name]: value }).split('\n');
        assert.equal(lines.length, 2);
        assert.ok(lines[1]?.startsWith(`  ${name} must be `), lines[1]);
      }
    });
  }

  it('have the parts of METRICS_ADDRESS', () => {
    const read = (text: string) => readConfig({ METRICS_ADDRESS: text }).metricsAddress;
    assert.equal(read('off'), undefined);
    assert.deepEqual(read('127.0.0.1:9464'), { host: '127.0.0.1', port: 9464, isRequired: true });
    assert.deepEqual(read('[::1]:1'), { host: '::1', port: 1, isRequired: true });
    assert.deepEqual(read(':0'), { host: '127.0.0.1', port: 0, isRequired: true });
  });

  it('never repeat a password', () => {
    for (const url of ['postgre://u:hunter2@h/d', 'u:hunter2@h/d', 'postgres://u:hunter2@h:port/d', 'hunter2']) {
      for (const name of ['DATABASE_URL', 'DATABASE_READ_URL', 'REDIS_URL']) {
        assert.ok(!complaint({ [name]: url, PORT: 'x' }).includes('hunter2'));
      }
    }
  });

  it('are described, each once, in the order of their names being read', () => {
    const names = Object.values(SETTINGS).map(({ name }) => name);
    assert.equal(new Set(names).size, names.length);
    for (const setting of Object.values(SETTINGS)) {
      assert.match(setting.name, /^[A-Z][A-Z_]*$/);
      assert.ok(setting.description.length > 0 && setting.default.length > 0);
    }
  });
});
