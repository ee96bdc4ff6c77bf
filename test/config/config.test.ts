import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigError, readConfig, redisAddressOf } from '../../src/config/config.js';
import { parseNotifyUrl, parsePostgresUrl, parseRedisUrl } from '../../src/config/parsers.js';
import { SETTINGS, type Config } from '../../src/config/settings.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const SIGNING_KEY = generateKeyPairSync('ed25519').privateKey;
const OTHER_KEY = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;

/** Passwords that a URL has to encode: at the first / ? or #, the host would end. */
const UNENCODED = ['p/hunter2', '12/hunter2', 'p@ss/hunter2', '12?hunter2', 'p@hunter2#w', 'p@ss?hunter2', '#hunter2'];

/** Every setting: its default, texts with their values, and texts that are refused. */
const CASES: {
  readonly [Key in keyof Config]: readonly [
    fallback: Config[Key],
    accepted: Readonly<Record<string, Config[Key]>>,
    refused: readonly string[],
  ];
} = {
  host: [
    '127.0.0.1',
    { ' 0.0.0.0 ': '0.0.0.0', '::1': '::1', 'catalog.example': 'catalog.example' },
    ['a b', 'a/b', 'http://x', '[::1]', 'a,b', 'a\nb'],
  ],
  port: [
    8080,
    { '0': 0, '65535': 65_535, '0080': 80 },
    ['-1', '65536', '80.5', '1e3', '0x50', 'http', '8080 8081', '\uFF19'],
  ],
  databaseUrl: [
    undefined,
    {
      'postgres://h/d': 'postgres://h/d',
      ' postgresql://u:p%40@h:1/d?sslmode=require ': 'postgresql://u:p%40@h:1/d?sslmode=require',
      'postgres://u@/d?host=/var/run/postgresql': 'postgres://u@/d?host=/var/run/postgresql',
    },
    [
      ...[
        'h',
        '/var/run',
        'http://h/d',
        'xpostgres://h/d',
        'postgres//h',
        'host=h dbname=d',
        'postgre://u:hunter2@h/d',
      ],
      ...UNENCODED.map((password) => `postgres://u:${password}@h/d`),
      ...['postgres://u:%e4hunter2@h/d', 'postgres://u:p@h/%e4', 'postgres://u:12/hunter2@/d?host=/run'],
    ],
  ],
  databaseReadUrl: [
    undefined,
    { 'postgres://replica/catalog': 'postgres://replica/catalog' },
    ['h', 'postgres://u:hunter2@h:port/d', ...UNENCODED.map((password) => `postgres://u:${password}@h/d`)],
  ],
  clientKey: [undefined, { svc_abcdefgh_0123: 'svc_abcdefgh_0123', ' k ': 'k' }, ['two words', 'schlüssel']],
  mirrorDatabaseUrl: [
    undefined,
    { 'postgres://h/films': 'postgres://h/films' },
    ['h', 'postgres://u:hunter2@h:port/d', ...UNENCODED.map((password) => `postgres://u:${password}@h/d`)],
  ],
  databasePoolSize: [10, { '2': 2, '1000': 1000 }, ['0', '1', '1001', 'many', '1e2']],
  redisUrl: [
    undefined,
    {
      'redis://h': 'redis://h',
      'redis://[::1]:1': 'redis://[::1]:1',
      ' REDISS://:p@%2F@mymaster/1 ': 'rediss://:p%40%2F@mymaster/1',
      'redis+cluster://h': 'redis+cluster://h',
      'rediss+cluster://u:p%40%2F@h:1,[::1]:2/': 'rediss+cluster://u:p%40%2F@h:1,[::1]:2/',
    },
    [
      ...['h', 'h:6379', 'http://h', 'redis:/h', 'redis://', 'redis://a,b:1', 'redis://h:65536', 'redis://h/x'],
      ...['redis://h/1/2', 'redis://h?db=1', 'redis://h#a', 'redis://:%zz@h', 'redis://:a/hunter2@h'],
      ...['redis+sentinel://h/m', 'hunter2', 'redis+cluster://', 'redis+cluster://h,', 'redis+cluster://h:x,h'],
      ...UNENCODED.flatMap((password) => ['redis', 'rediss+cluster'].map((scheme) => `${scheme}://:${password}@h`)),
      ...['redis+cluster://h/1', 'redis+cluster://:%zz@h', 'redis+cluster://u:p@h1,u:p@h2', 'redis+cluster://h?a=1'],
    ],
  ],
  redisSentinels: [
    undefined,
    {
      'a:1, b.example,[::1]:26380': [
        { host: 'a', port: 1 },
        { host: 'b.example', port: 26_379 },
        { host: '::1', port: 26_380 },
      ],
    },
    ['h:0', 'h:65536', 'h:x', 'a,,b', 'redis://:hunter2@h:1', '::1', 'u@h', 'a b'],
  ],
  redisSentinelPassword: [undefined, { 's&t': 's&t' }, []],
  publicUrl: [
    undefined,
    {
      'https://h/': 'https://h',
      ' https://Catalog.example:8443/ ': 'https://catalog.example:8443',
      'http://localhost:8080': 'http://localhost:8080',
      'http://127.10.0.1': 'http://127.10.0.1',
      'http://[::1]:1': 'http://[::1]:1',
    },
    [
      ...['h', 'h:8080', 'http://h', 'http://10.0.0.1', 'http://localhost.example', 'http://notlocalhost'],
      ...['http://127.0.0.1.example', 'ftp://localhost', 'https://h/path', 'https://h/?a', 'https://h?', 'https://h#a'],
      ...['https://u:hunter2@h', 'https://:hunter2@h'],
    ],
  ],
  oidcIssuer: [
    undefined,
    {
      'https://id.example/realm/': 'https://id.example/realm/',
      'http://localhost:3000': 'http://localhost:3000',
      'http://127.0.0.1:1/x': 'http://127.0.0.1:1/x',
    },
    ['id.example', 'http://id.example', 'https://u:hunter2@h', 'https://h?a', 'https://h#'],
  ],
  oidcClientId: [undefined, { catalog: 'catalog' }, []],
  oidcClientSecret: [undefined, { 's e c': 's e c' }, []],
  oidcName: [undefined, { ' Example ID ': 'Example ID' }, ['a\nb', 'x'.repeat(201)]],
  oidcSignUp: [false, { on: true, off: false }, ['yes', 'ON', '1']],
  trustedProxies: [0, { off: 0, '1': 1, '9': 9 }, ['0', '10', 'on', 'true', '-1', '1.5', '10.0.0.1']],
  site: [true, { on: true, off: false }, ['On', 'true', '1', 'no']],
  attribution: [
    undefined,
    { ' Data: Example Library ': 'Data: Example Library', '"Data" by "Example"': '"Data" by "Example"' },
    ['a\nb', 'x'.repeat(201), '`ls`', 'a\u202Eb'],
  ],
  operatorContact: [
    undefined,
    {
      ' ops@catalog.example ': 'mailto:ops@catalog.example',
      'mailto:ops@catalog.example?subject=Catalog': 'mailto:ops@catalog.example?subject=Catalog',
      'https://h/support': 'https://h/support',
    },
    [
      'ops',
      'ops@',
      'http://h',
      'a b@h',
      'a@b@h',
      'mailto:ops',
      'https://',
      'https://u:hunter2@h',
      'javascript:alert(1)',
      'tel:+1',
    ],
  ],
  securityContact: [
    undefined,
    { ' mailto:a@b.example ': 'mailto:a@b.example', 'https://h/report': 'https://h/report' },
    ['mailto:a', 'http://h', 'https://', 'https://h/a b', 'https://h\nContact: x', 'tel:+1'],
  ],
  copiesDir: [undefined, { '/srv/copies': '/srv/copies' }, []],
  copySigningKey: [
    undefined,
    {
      [String(SIGNING_KEY.export({ format: 'pem', type: 'pkcs8' }))]: SIGNING_KEY,
      [SIGNING_KEY.export({ format: 'der', type: 'pkcs8' }).toString('base64')]: SIGNING_KEY,
    },
    ['hunter2', String(OTHER_KEY.export({ format: 'pem', type: 'pkcs8' })), '-----BEGIN PRIVATE KEY-----'],
  ],
  notifyUrl: [
    undefined,
    {
      'https://hooks.example/a/b?token=c': 'https://hooks.example/a/b?token=c',
      'http://localhost:1/': 'http://localhost:1/',
    },
    ['hooks.example', 'http://hooks.example/', 'https://u:hunter2@h/', 'https://h/#hunter2', 'ftp://h/'],
  ],
  notifySecret: [
    undefined,
    { [`whsec_${'A'.repeat(32)}`]: Buffer.alloc(24), [`whsec_${'A'.repeat(84)}AA==`]: Buffer.alloc(64) },
    [
      'hunter2',
      'A'.repeat(32),
      `whsec_${'A'.repeat(28)}`,
      `whsec_${'A'.repeat(88)}`,
      `whsec_${'A'.repeat(31)}`,
      'whsec_hunter2',
    ],
  ],
  drainSeconds: [5, { '0': 0, '600': 600 }, ['-1', '601', '1.5', '5s', 'off']],
  requestTimeoutMs: [900, { '100': 100, '10000': 10_000 }, ['99', '10001', '1.5', '1s']],
  dataDir: [undefined, { './some where': './some where' }, []],
  metricsAddress: [
    { host: '127.0.0.1', port: 9464, isRequired: false },
    {
      off: undefined,
      ':0': { host: '127.0.0.1', port: 0, isRequired: true },
      '[::1]:1': { host: '::1', port: 1, isRequired: true },
      'localhost:65535': { host: 'localhost', port: 65_535, isRequired: true },
      '127.0.0.1:9464': { host: '127.0.0.1', port: 9464, isRequired: true },
    },
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
  operatorPages: [true, { on: true, off: false }, ['true', '0', 'OFF']],
  logLevel: [
    'info',
    { trace: 'trace', fatal: 'fatal', silent: 'silent' },
    ['INFO', 'verbose', '30', 'toString', '__proto__'],
  ],
  logFormat: ['auto', { auto: 'auto', json: 'json' }, ['JSON', 'text', 'pretty', 'toString']],
};

/** Settings that some settings require. */
const COMPLETE = {
  DATABASE_URL: 'postgres://h/d',
  REDIS_URL: 'redis://h',
  OIDC_ISSUER: 'https://id.example',
  OIDC_CLIENT_ID: 'catalog',
  OIDC_CLIENT_SECRET: 'secret',
  PUBLIC_URL: 'https://catalog.example',
  NOTIFY_URL: 'https://hooks.example/hunter2',
  NOTIFY_SECRET: `whsec_${'A'.repeat(32)}`,
};

/** Settings that cannot be combined, and the line about them. */
const CONFLICTS: readonly (readonly [settings: Record<string, string>, line: string])[] = [
  [
    { DATABASE_READ_URL: 'postgres://u:hunter2@replica/catalog' },
    'DATABASE_READ_URL must be a replica of DATABASE_URL, which is not set',
  ],
  [{ NOTIFY_URL: 'https://hooks.example/hunter2' }, 'NOTIFY_URL requires NOTIFY_SECRET, which signs the notices'],
  [{ NOTIFY_SECRET: COMPLETE.NOTIFY_SECRET }, 'NOTIFY_SECRET has no effect without NOTIFY_URL'],
  [
    { REDIS_SENTINELS: 'h' },
    'REDIS_SENTINELS requires REDIS_URL with the name of the master, such as redis://mymaster',
  ],
  [
    { REDIS_SENTINELS: 'h', REDIS_URL: 'redis+cluster://:hunter2@h' },
    'REDIS_SENTINELS cannot be combined with a Redis Cluster in REDIS_URL, which needs none',
  ],
  ...['OIDC_ISSUER', 'OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET', 'PUBLIC_URL'].map(
    (name) => [{ ...COMPLETE, [name]: ' ' }, `${name} must be set: sign-in by OpenID Connect requires it`] as const,
  ),
];

/** Returns the lines of the error about settings that cannot be used. */
function linesAbout(environment: Record<string, string>): string[] {
  try {
    readConfig(environment);
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    const [first, ...lines] = error.message.split('\n');
    assert.equal(first, 'These settings cannot be used:');
    assert.ok(!error.message.includes('hunter2'), 'a password is repeated');
    return lines;
  }
  return assert.fail(`accepted: ${JSON.stringify(environment)}`);
}

describe('the settings', () => {
  const defaults = Object.fromEntries(Object.entries(CASES).map(([key, [fallback]]) => [key, fallback]));

  it('a variable that is blank counts as not set', () => {
    for (const blank of [undefined, '', ' \t ']) {
      const names = Object.values(SETTINGS).map(({ name }) => name);
      assert.deepEqual(readConfig(Object.fromEntries(names.map((name) => [name, blank]))), defaults);
    }
    assert.ok(Object.isFrozen(readConfig({ UNKNOWN: 'x', port: '1' })));
  });

  it('every setting is read and checked', () => {
    for (const [key, [, accepted, refused]] of Object.entries(CASES)) {
      const { name, description, default: inWords } = SETTINGS[key as keyof Config];
      for (const [text, value] of Object.entries(accepted)) {
        assert.deepEqual(readConfig({ ...COMPLETE, [name]: text })[key as keyof Config], value, `${name}=${text}`);
      }
      for (const text of refused) {
        const [line = '', ...others] = linesAbout({ ...COMPLETE, [name]: text });
        assert.ok(line.startsWith(`  ${name} must be `) && others.length === 0, line);
      }
      assert.match(name, /^[A-Z][A-Z_]*$/);
      assert.ok(description.length > 0 && inWords.length > 0);
    }
  });

  it('quotes around a value are refused, since Docker keeps the quotes of an env file', () => {
    for (const { name, isSecret } of Object.values(SETTINGS)) {
      for (const variable of [name, ...(isSecret ? [`${name}_FILE`] : [])]) {
        for (const text of ['"hunter2"', "'hunter2'", '""', '"it\'s\nhunter2"', ' "hunter2" ']) {
          const [line = '', ...others] = linesAbout({ ...COMPLETE, [name]: '', [variable]: text });
          assert.ok(line.startsWith(`  ${name} must be set without quotes`) && others.length === 0, line);
        }
      }
    }
  });

  it('no error repeats a URL with a password that was set under the wrong name', () => {
    for (const { name } of Object.values(SETTINGS)) {
      for (const url of ['redis://:hunter2@h:1/0', 'postgres://u:hunter2@h/d', 'https://u:hunter2@h/']) {
        try {
          readConfig({ ...COMPLETE, [name]: url });
        } catch (error) {
          assert.ok(error instanceof ConfigError && !error.message.includes('hunter2'), String(error));
        }
      }
    }
  });

  it('settings that cannot be combined are refused', () => {
    for (const [settings, line] of CONFLICTS) assert.deepEqual(linesAbout(settings), [`  ${line}`]);
    assert.equal(linesAbout({ OIDC_SIGN_UP: ' on ' }).length, 4);
  });

  it('each node of a Redis Cluster is connected to with the user, the password and the TLS of the setting', () => {
    const address = redisAddressOf(readConfig({ REDIS_URL: 'REDISS+CLUSTER://u:p%40@h:1,[::1]:2' }));
    assert.deepEqual(address?.cluster, ['rediss://u:p%40@h:1', 'rediss://u:p%40@[::1]:2']);
  });

  it('all wrong settings are reported together', () => {
    assert.deepEqual(
      linesAbout({ HOST: 'a b', PORT: '65536', DATABASE_POOL_SIZE: '1', LOG_LEVEL: 'INFO', SITE: 'no' }),
      [
        '  HOST must be an address or a host name such as 127.0.0.1, not "a b"',
        '  PORT must be a whole number from 0 to 65535, not "65536"',
        '  DATABASE_POOL_SIZE must be a whole number from 2 to 1000, not "1"',
        '  SITE must be on or off, not "no"',
        '  LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent, not "INFO"',
      ],
    );
  });

  describe('a secret in a file', () => {
    let folder: string;
    const secrets = Object.entries(SETTINGS).filter(([, { isSecret }]) => isSecret) as [
      keyof Config,
      { name: string },
    ][];

    before(async () => {
      folder = await temporaryFolder();
      await writeFile(join(folder, 'empty'), '\n');
    });

    it('every setting that may contain a password is a secret', () => {
      for (const { name, parse, isSecret } of Object.values(SETTINGS)) {
        const mayContainPassword =
          parse === parsePostgresUrl ||
          parse === parseRedisUrl ||
          parse === parseNotifyUrl ||
          /PASSWORD|SECRET|TOKEN|KEY/.test(name);
        assert.equal(isSecret, mayContainPassword, name);
      }
    });

    it('the path of a file with a secret can be given in its place', async () => {
      for (const [key, { name }] of secrets) {
        const [text = '', value] = Object.entries<Config[keyof Config]>({ ...CASES[key][1] })[0] ?? [];
        const path = join(folder, name);
        await writeFile(path, `${text}\n`, { mode: 0o400 });
        const { [name]: _, ...others } = { ...COMPLETE } as Record<string, string>;
        assert.deepEqual(readConfig({ ...others, [`${name}_FILE`]: ` ${path} `, [name]: ' ' })[key], value);

        const linesFor = (file: string) => linesAbout({ ...others, [`${name}_FILE`]: file });
        assert.deepEqual(linesAbout({ ...others, [name]: text, [`${name}_FILE`]: path }), [
          `  ${name} must be set only once, and ${name}_FILE is set too`,
        ]);
        // The path could be the secret itself.
        assert.deepEqual(linesFor('postgres://u:hunter2@h/d'), [
          `  ${name} cannot be read from the file that ${name}_FILE names (ENOENT: no such file or directory)`,
        ]);
        assert.deepEqual(linesFor(join(folder, 'empty')), [
          `  ${name} must not be empty in the file that ${name}_FILE names`,
        ]);
        assert.deepEqual(linesFor('/dev/null'), [
          `  ${name} cannot be read: ${name}_FILE names something other than a regular file`,
        ]);
      }
    });

    it('quotes in a file belong to the secret', async () => {
      await writeFile(join(folder, 'quoted'), '"s e c"\n');
      const { OIDC_CLIENT_SECRET: _, ...others } = COMPLETE;
      const config = readConfig({ ...others, OIDC_CLIENT_SECRET_FILE: join(folder, 'quoted') });
      assert.equal(config.oidcClientSecret, '"s e c"');
    });

    it('a text in a file is checked and not repeated', async () => {
      await writeFile(join(folder, 'wrong'), 'mysql://u:hunter2@h/d');
      const [line = '', ...others] = linesAbout({ DATABASE_URL_FILE: join(folder, 'wrong') });
      assert.ok(line.startsWith('  DATABASE_URL must be a URL') && others.length === 0, line);
    });

    it('settings that are no secrets are not read from files', () => {
      assert.equal(readConfig({ PORT_FILE: '/nonexistent' }).port, 8080);
    });
  });
});
