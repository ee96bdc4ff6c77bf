import assert from 'node:assert/strict';
import { repairCounts } from '../../../src/catalog/counts.js';
import { restartFeed } from '../../../src/catalog/restart.js';
import { createClient, createTitleCounter } from '../../../src/client/client.js';
import { CopySource } from '../../../src/client/mirror/copy-source.js';
import { mirror as keepMirror } from '../../../src/client/mirror/mirror.js';
import type { MirrorOptions } from '../../../src/client/mirror/options.js';
import type { Manifest } from '../../../src/copies/manifest.js';
import { systemClock } from '../../../src/platform/time/micros.js';
import { openTestDatabase, type OpenTestDatabase } from '../../support/database.js';
import { eventually } from '../../support/eventually.js';
import { installClock } from '../../support/postgres/model-clock.js';
import { pastTriggers } from '../../support/postgres/past-triggers.js';
import { startProgram, type Outcome, type RunningProgram } from '../../support/program.js';
import { runCommand, startCommand, type RunningCommand } from '../../support/programs/command.js';
import type { TestService } from '../../support/service.js';
import { addTitles, emptyCatalogue } from '../../support/titles.js';
import { testWorld } from '../../support/world.js';
import { requireEqual } from './equality.js';
import { startCopyHost, type CopyHost } from './publishing.js';

/**
 * A service, a static host of its copies, and the database of a mirror, opened by mocha's hooks. All are empty before
 * each test. Call it first thing in `describe`.
 */
export function mirrorWorld() {
  let ahead = 0n;
  const world = testWorld({ service: { now: () => systemClock() + ahead } });
  let parts: {
    readonly service: TestService;
    readonly host: CopyHost;
    readonly mirror: OpenTestDatabase;
    readonly setClock: (ahead: bigint) => Promise<void>;
  };

  before(async () => {
    const { service } = world;
    const host = await startCopyHost();
    world.defer(() => host.stop());
    const mirror = await openTestDatabase();
    world.defer(() => mirror.close());
    const clock = await installClock(service.db);
    const setClock = async (micros: bigint): Promise<void> => {
      ahead = micros;
      await clock.setOffset(micros);
    };
    parts = { service, host, mirror, setClock };
  });

  const reset = async (): Promise<void> => {
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
    host.sendsAtMost = Infinity;
  };
  beforeEach(reset);

  const environment = () => ({ CATALOG_API_KEY: parts.service.key, MIRROR_DATABASE_URL: parts.mirror.url });
  const args = (more: readonly string[]): string[] => {
    const [command, rest] = more[0] === 'verify' ? [['mirror', 'verify'], more.slice(1)] : [['mirror'], more];
    return [...command, '--from', parts.service.url, '--copies', parts.host.url, ...rest];
  };
  const of = {
    get service() {
      return parts.service;
    },
    get host() {
      return parts.host;
    },
    get mirror() {
      return parts.mirror;
    },
    /** Empties all of it, as before each test. */
    reset,
    /** Moves the clocks of the service and of its database, in microseconds. */
    setClock: (ahead: bigint): Promise<void> => parts.setClock(ahead),
    /** Adds titles, and publishes a copy that has them. */
    publishTitles: async (titles: number): Promise<Manifest> => {
      await addTitles(parts.service.db, titles);
      return parts.host.publish(parts.service);
    },
    /** Runs the mirror, or another command about it, in this process. */
    run: (...more: string[]): Promise<Outcome> => of.runWith({}, ...more),
    /** The same with further settings. */
    runWith: (settings: Readonly<Record<string, string>>, ...more: string[]): Promise<Outcome> =>
      runCommand(args(more), { ...environment(), ...settings }),
    /** Runs the mirror until it has everything. @returns what it reports */
    succeed: async (...more: string[]): Promise<string> => {
      const { code, stderr } = await of.run('--once', ...more);
      assert.equal(code, 0, stderr);
      return stderr;
    },
    /** Runs the mirror to its failure. @returns the reason */
    fail: async (...more: string[]): Promise<string> => {
      const { code, stderr } = await of.run('--once', ...more);
      assert.equal(code, 1, stderr);
      return stderr;
    },
    /** Starts the mirror in a process of its own. */
    startProcess: (...more: string[]): RunningProgram =>
      startProgram(args(['--interval', '0.1', ...more]), environment()),
    /** Starts the mirror in this process. */
    startUnawaited: (...more: string[]): RunningCommand =>
      startCommand(args(['--interval', '0.1', ...more]), environment()),
    /** The same, and waits until it follows. */
    start: async (...more: string[]): Promise<RunningCommand> => {
      const program = of.startUnawaited(...more);
      await eventually('the mirror follows', () => program.output.stderr.includes('Following'));
      return program;
    },
    /** Requires that the mirror has exactly the titles of the service. @returns their number */
    requireEqual: (): Promise<number> => requireEqual(parts.service.db, parts.mirror.db),
    isEqual: (): Promise<boolean> =>
      of.requireEqual().then(
        () => true,
        () => false,
      ),
    /** Keeps the mirror in this process, with short waits, until the signal is aborted. */
    keep(signal: AbortSignal, options: Partial<MirrorOptions>): Promise<number | undefined> {
      const { service, host, mirror } = parts;
      const client = { baseUrl: service.url, key: service.key };
      return keepMirror({
        databaseUrl: mirror.url,
        schema: 'catalog_mirror',
        baseUrl: service.url,
        source: new CopySource({ ...client, copiesUrl: host.url }),
        fetchPage: createClient(client),
        countTitles: createTitleCounter(client),
        signal,
        once: false,
        intervalMs: 10,
        retryPolicy: { firstMs: 10, longestMs: 20, giveUpAfterMs: Infinity },
        allowRemovals: false,
        observe: () => undefined,
        ...options,
      });
    },
    /** @returns the row with the mirror's position, if it has begun */
    async state(): Promise<unknown> {
      return parts.mirror.db.withSchema('catalog_mirror').from('state').first('position');
    },
    /** Makes the catalogue that of a backup: titles named `later-…` are gone, and another is as it was. */
    async restoreBackup(): Promise<void> {
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
