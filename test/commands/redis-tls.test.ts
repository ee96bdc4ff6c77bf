import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { runProgram, type Outcome } from '../support/program.js';
import { eventually } from '../support/eventually.js';
import { runCommand } from '../support/programs/command.js';
import { freePort } from '../support/programs/free-port.js';
import { startRedis } from '../support/redis/redis.js';
import { skipWithout } from '../support/programs/skip.js';
import { findProgram, REDIS } from '../support/programs/system-program.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { testWorld } from '../support/world.js';

const PASSWORD = 'p@ss/w:rd?#%';
const SENTINEL_PASSWORD = 's&t=1';

describe('Redis behind TLS, with a certificate of a private authority and passwords', () => {
  const world = testWorld();
  let developer: string;
  let certificate: string;
  /** Where each kind listens with TLS. */
  const ports = { server: 0, sentinel: 0, node: 0 };

  before(async function () {
    if (!canTls()) skipWithout('openssl and a Redis server built with TLS', this);
    developer = String((await world.newKey()).developerId);
    const folder = await temporaryFolder();
    certificate = join(folder, 'certificate.pem');
    const key = join(folder, 'key.pem');
    execFileSync(
      'openssl',
      [
        ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', '/CN=test'],
        ...['-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', certificate],
      ],
      { stdio: 'ignore' },
    );
    for (const kind of ['server', 'sentinel', 'node'] as const) ports[kind] = await freePort();
    const tls = (port: number): Record<string, string> => ({
      'tls-port': String(port),
      'tls-cert-file': certificate,
      'tls-key-file': key,
      'tls-ca-cert-file': certificate,
      'tls-auth-clients': 'no',
    });
    const redis = await startRedis({ settings: { ...tls(ports.server), requirepass: PASSWORD } });
    world.defer(() => redis.stop());
    const sentinel = await startRedis({
      sentinel: [
        ...Object.entries(tls(ports.sentinel)).map(([name, value]) => `${name} "${value}"`),
        'tls-replication yes',
        `requirepass "${SENTINEL_PASSWORD}"`,
        `sentinel monitor mymaster 127.0.0.1 ${ports.server} 1`,
        `sentinel auth-pass mymaster "${PASSWORD}"`,
      ].join('\n'),
    });
    world.defer(() => sentinel.stop());
    const node = await startRedis({
      settings: {
        ...tls(ports.node),
        requirepass: PASSWORD,
        'cluster-enabled': 'yes',
        'tls-cluster': 'yes',
        'cluster-announce-ip': '127.0.0.1',
      },
    });
    world.defer(() => node.stop());
    const client = new Redis(node.url, { password: PASSWORD, enableReadyCheck: false });
    await client.cluster('ADDSLOTSRANGE', 0, 16_383);
    await eventually('it has its slots', async () => (await client.cluster('INFO')).includes('cluster_state:ok'));
    client.disconnect();
  });

  function usage(environment: Readonly<Record<string, string>>): Promise<Outcome> {
    const args = ['developers', 'quotas', developer];
    // Node.js reads the authorities when a process starts.
    const run = environment.NODE_EXTRA_CA_CERTS === undefined ? runCommand : runProgram;
    return run(args, { DATABASE_URL: world.url, ...environment });
  }

  it('one server, the master that Sentinels name, or a cluster is used once the authority is trusted, and not before', async () => {
    const urlOf = (host: string): string => `rediss://default:${encodeURIComponent(PASSWORD)}@${host}`;
    const server = { REDIS_URL: urlOf(`127.0.0.1:${ports.server}`) };
    const sentinels = {
      REDIS_URL: urlOf('mymaster'),
      REDIS_SENTINELS: `127.0.0.1:${ports.sentinel}`,
      REDIS_SENTINEL_PASSWORD: SENTINEL_PASSWORD,
    };
    const cluster = { REDIS_URL: urlOf(`127.0.0.1:${ports.node}`).replace(':', '+cluster:') };
    const trusting = { NODE_EXTRA_CA_CERTS: certificate };
    for (const settings of [server, sentinels, cluster]) {
      const { code, stderr } = await usage({ ...settings, ...trusting });
      assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    }
    for (const [environment, reason] of [
      [server, /self-signed certificate/],
      [sentinels, /to sentinel .* Connection is closed/],
      [cluster, /self-signed certificate|Connection is closed/],
      [{ REDIS_URL: urlOf(`localhost:${ports.server}`), ...trusting }, /does not match certificate's altnames/],
    ] as const) {
      const refused = await usage(environment);
      assert.equal(refused.code, 1);
      assert.match(refused.stderr, /^catalog: The Redis named by REDIS_URL cannot be reached \(/m);
      assert.match(refused.stderr, reason);
      assert.doesNotMatch(refused.stderr, /p@ss|p%40ss|s&t/);
    }
  });
});

function canTls(): boolean {
  const program = findProgram(REDIS);
  if (program === undefined || spawnSync('openssl', ['version']).status !== 0) return false;
  // It ends at once in either case: without a certificate, or because the setting does not exist.
  const { stderr } = spawnSync(program, ['--port', '0', '--tls-port', '1'], { encoding: 'utf8' });
  return !stderr.includes('Bad directive');
}
