import assert from 'node:assert/strict';
import { repairCounts } from '../../src/catalog/counts.js';
import { restartFeed } from '../../src/catalog/restart.js';
import { createClient, createTitleCounter } from '../../src/follower/client.js';
import { createCopySource } from '../../src/mirror/copy-source.js';
import { mirror as keepMirror, type MirrorOptions } from '../../src/mirror/mirror.js';
import { MirrorStatus } from '../../src/mirror/status.js';
import { systemClock } from '../../src/platform/time/micros.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { installClock } from '../support/postgres/model-clock.js';
import { pastTriggers } from '../support/postgres/past-triggers.js';
import { startProgram, type Outcome, type RunningProgram } from '../support/program.js';
import { runCommand, startCommand, type RunningCommand } from '../support/programs/command.js';
import type { TestService } from '../support/service.js';
import { emptyCatalogue } from '../support/titles.js';
import { testWorld } from '../support/world.js';
import { requireEqual } from './equality.js';
import { startCopyHost, type CopyHost } from './publishing.js';

/** A service, a static host of its copies, and the database of a mirror. All are empty before each test. */
export interface MirrorWorld {
  readonly service: TestService;
  readonly host: CopyHost;
  readonly mirror: OpenTestDatabase;
  readonly environment: Readonly<Record<string, string>>;
  /** Moves the clocks of the service and of its database, in microseconds. */
  readonly setClock: (ahead: bigint) => Promise<void>;
  /** Runs the mirror, or another command about it, in this process. */
  readonly run: (...args: string[]) => Promise<Outcome>;
  /** The same with further settings. */
  readonly runWith: (settings: Readonly<Record<string, string>>, ...args: string[]) => Promise<Outcome>;
  /** Runs the mirror until it has everything. @returns what it reports */
  readonly succeed: (...args: string[]) => Promise<string>;
  /** Runs the mirror to its failure. @returns the reason */
  readonly fail: (...args: string[]) => Promise<string>;
  /** Starts the mirror in a process of its own. */
  readonly startProcess: (...args: string[]) => RunningProgram;
  /** Starts the mirror in this process. */
  readonly startUnawaited: (...args: string[]) => RunningCommand;
  /** The same, and waits until it follows. */
  readonly start: (...args: string[]) => Promise<RunningCommand>;
  /** Requires that the mirror has exactly the titles of the service. @returns their number */
  readonly requireEqual: () => Promise<number>;
  /** Whether it has. */
  readonly isEqual: () => Promise<boolean>;
  /** Keeps the mirror in this process, with short waits, until the signal is aborted. */
  readonly keep: (signal: AbortSignal, options: Partial<MirrorOptions>) => Promise<unknown>;
  /** @returns the row with the mirror's position, if it has begun */
  readonly state: () => Promise<unknown>;
  /** Makes the catalogue that of a backup: titles named `later-…` are gone, and another is as it was. */
  readonly restoreBackup: () => Promise<void>;
}

/** Opens the world by mocha's hooks. Call it first thing in `describe`. */
export function mirrorWorld(): MirrorWorld {
  let ahead = 0n;
  const world = testWorld({ service: { now: () => systemClock() + ahead } });
  let parts: Pick<MirrorWorld, 'service' | 'host' | 'mirror' | 'setClock'>;

  before(async () => {
    const { service } = world;
    const host = await startCopyHost();
    world.defer(() => host.close());
    const mirror = await openTestDatabase();
    world.defer(() => mirror.close());
    const clock = await installClock(service.db);
    const setClock = async (micros: bigint): Promise<void> => {
      ahead = micros;
      await clock.setOffset(micros);
    };
    parts = { service, host, mirror, setClock };
  });

  beforeEach(async () => {
    const { service, host, mirror, setClock } = parts;
    await setClock(0n);
    // A session that a test has left may still read.
    await mirror.db.raw(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name like 'catalog mirror%'",
    );
    await mirror.db.raw('drop schema if exists catalog_mirror cascade');
    await emptyCatalogue(service.db);
    host.files.clear();
    host.refusals.clear();
    host.requests.length = 0;
  });

  const args = (more: readonly string[]): string[] => {
    const [command, rest] = more[0] === 'verify' ? [['mirror', 'verify'], more.slice(1)] : [['mirror'], more];
    return [...command, '--from', parts.service.url, '--copies', parts.host.url, ...rest];
  };
  const of: MirrorWorld = {
    get service() {
      return parts.service;
    },
    get host() {
      return parts.host;
    },
    get mirror() {
      return parts.mirror;
    },
    get environment() {
      return { CATALOG_API_KEY: parts.service.key, MIRROR_DATABASE_URL: parts.mirror.url };
    },
    setClock: (micros) => parts.setClock(micros),
    run: (...more) => of.runWith({}, ...more),
    runWith: (settings, ...more) => runCommand(args(more), { ...of.environment, ...settings }),
    async succeed(...more) {
      const { code, stderr } = await of.run('--once', ...more);
      assert.equal(code, 0, stderr);
      return stderr;
    },
    async fail(...more) {
      const { code, stderr } = await of.run('--once', ...more);
      assert.equal(code, 1, stderr);
      return stderr;
    },
    startProcess: (...more) => startProgram(args(['--interval', '0.1', ...more]), of.environment),
    startUnawaited: (...more) => startCommand(args(['--interval', '0.1', ...more]), of.environment),
    async start(...more) {
      const program = of.startUnawaited(...more);
      await eventually('the mirror follows', () => program.output.stderr.includes('Following'));
      return program;
    },
    requireEqual: () => requireEqual(parts.service.db, parts.mirror.db),
    isEqual: () =>
      of.requireEqual().then(
        () => true,
        () => false,
      ),
    keep(signal, options) {
      const { service, host, mirror } = parts;
      const client = { baseUrl: service.url, key: service.key };
      return keepMirror({
        databaseUrl: mirror.url,
        schema: 'catalog_mirror',
        baseUrl: service.url,
        source: createCopySource({ ...client, copiesUrl: host.url }),
        readPage: createClient(client),
        countTitles: createTitleCounter(client),
        signal,
        once: false,
        intervalMs: 10,
        retryPolicy: { firstMs: 10, longestMs: 20, giveUpAfterMs: Infinity },
        status: new MirrorStatus(),
        onFailure: () => undefined,
        onProgress: () => undefined,
        onRefused: () => undefined,
        onNoCopy: () => undefined,
        onLoaded: () => undefined,
        onFollowing: () => undefined,
        ...options,
      });
    },
    state: () => parts.mirror.db.withSchema('catalog_mirror').from('state').first('position'),
    async restoreBackup() {
      const { db } = parts.service;
      await pastTriggers(db, 'titles', async (transaction) => {
        await transaction.raw("delete from titles where svc_id like 'later-%'");
        await transaction.raw("update titles set title = 'As at first' where svc_id = 'title-0002'");
      });
      await repairCounts(db);
      await restartFeed(db);
    },
  };
  return of;
}
