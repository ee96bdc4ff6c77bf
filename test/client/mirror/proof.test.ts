import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { repairCounts } from '../../../src/catalog/counts.js';
import { restartFeed } from '../../../src/catalog/restart.js';
import { MANIFEST_NAME, type Manifest } from '../../../src/copies/manifest.js';
import { signManifest } from '../../../src/copies/signature.js';
import { withAdvice, type OperatorError } from '../../../src/errors.js';
import { CopySource } from '../../../src/client/mirror/copy-source.js';
import type { MirrorOptions } from '../../../src/client/mirror/options.js';
import { eventually } from '../../support/eventually.js';
import { freePort } from '../../support/programs/free-port.js';
import { pastTriggers } from '../../support/postgres/past-triggers.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { addTitles } from '../../support/titles.js';
import { mirrorWorld } from './mirror-world.js';

const TITLES = 30;

const DAY = 86_400_000_000n;

/** Copies must be signed with the key below. */
const SIGNED: Partial<MirrorOptions> = {};

const { privateKey, publicKey } = generateKeyPairSync('ed25519');

describe('a mirror gives up no rows without proof', () => {
  const world = mirrorWorld();
  /** The options that accept only copies signed with the key above. */
  let signed: readonly string[];

  before(async () => {
    const file = join(await temporaryFolder(), 'copies.pub');
    await writeFile(file, publicKey.export({ type: 'spki', format: 'pem' }));
    signed = ['--public-key', file];
  });

  /** Makes the service lose titles, as a restored backup has. */
  async function lose(titles: number): Promise<void> {
    await pastTriggers(world.service.db, 'titles', (transaction) =>
      transaction.raw(
        'delete from titles where svc_id in (select svc_id from titles order by svc_id desc limit ?::int)',
        [titles],
      ),
    );
    await repairCounts(world.service.db);
  }

  /** Makes the address lead to another database of the service, whose feed accepts the mirror's position. */
  async function becomeOther(lost = 20): Promise<void> {
    await lose(lost);
    await world.service.db.raw('update catalog_feed set identity = gen_random_uuid()');
  }

  /** Writes the catalogue again, so that the whole feed has every title, and lets the mirror's position leave it. */
  async function leaveWindow(): Promise<void> {
    await world.setClock(31n * DAY);
    await world.service.db('titles').update({ has_bundles: world.service.db.raw('not has_bundles') });
  }

  /** Publishes a copy with another manifest. */
  async function publishAltered(alter: (manifest: Manifest) => Manifest): Promise<void> {
    const manifest = await world.host.publish(world.service);
    world.host.files.set(MANIFEST_NAME, Buffer.from(JSON.stringify(alter(manifest))));
  }

  function withoutFeed({ feed_id: _feed, ...rest }: Manifest): Manifest {
    return rest;
  }

  async function contents(): Promise<unknown[]> {
    const from = (table: string) => world.mirror.db.withSchema('catalog_mirror').from(table);
    return [await from('titles').orderBy('svc_id'), await from('state')];
  }

  /** @param act - returns what the mirror says */
  async function assertKept(reason: RegExp, act: () => Promise<string>): Promise<string> {
    const before = await contents();
    const said = await act();
    assert.match(said, reason);
    assert.deepEqual(await contents(), before);
    return said;
  }

  /** Runs the mirror to its failure, which no wait delays. @returns what it observes, and the error */
  async function failSoon(options: Partial<MirrorOptions>): Promise<string> {
    const { url: baseUrl, key } = world.service;
    const observed: string[] = [];
    const error = await world
      .keep(new AbortController().signal, {
        source: new CopySource({
          baseUrl,
          key,
          copiesUrl: world.host.url,
          publicKey: options === SIGNED ? publicKey : undefined,
        }),
        once: true,
        retryPolicy: { firstMs: 1, longestMs: 1, giveUpAfterMs: 3 },
        observe: ({ kind }) => observed.push(kind),
        ...options,
      })
      .then(
        () => assert.fail('it did not fail'),
        (reason: unknown) => reason as OperatorError,
      );
    return `${observed.join(' ')} ${withAdvice(error)}`;
  }

  const NO_COPY =
    /the service now has the feed [0-9a-f-]{36}, and no copy of it is published at http:\S+\/\. The mirror keeps its rows\. Check that --from leads to the service that you mirror\. If it does, ask its operator to publish copies/;
  const UNSIGNED = /No copy is published at http:\S+\/, and with --public-key only a signed copy is loaded\. Ask the/;
  const MOST = /would remove 20 of the mirror's 30 rows, more than a tenth\. .*--allow-removals/;

  const CASES: Readonly<
    Record<string, readonly [arrange: () => Promise<unknown>, reason: RegExp, options?: Partial<MirrorOptions>]>
  > = {
    'another database at the address that has published no copy': [() => becomeOther(), NO_COPY],
    'another database at the address, whatever may be removed': [() => becomeOther(), NO_COPY, { allowRemovals: true }],
    'another database at the address whose feed refuses the position': [
      async () => {
        await becomeOther();
        await leaveWindow();
      },
      NO_COPY,
    ],
    'a restored database without a copy from after the restore': [
      async () => {
        await lose(1);
        await restartFeed(world.service.db);
      },
      NO_COPY,
    ],
    'another database whose copy names no feed': [
      async () => {
        await becomeOther(1);
        await publishAltered(withoutFeed);
      },
      /The mirror belongs to the feed \S{36}, but the service now has the feed \S{36}\. Ask the operator/,
    ],
    'another database whose copy is of the feed before': [
      async () => {
        await lose(1);
        await world.host.publish(world.service);
        await becomeOther(0);
      },
      /The newest copy belongs to the feed \S{36}, but the service now has the feed \S{36}\. Ask the operator/,
    ],
    'another database whose copy is not signed': [
      async () => {
        await becomeOther(1);
        await world.host.publish(world.service);
      },
      /The manifest is not signed, but a public key was given\./,
      SIGNED,
    ],
    'another database without a copy, where copies must be signed': [() => becomeOther(), UNSIGNED, SIGNED],
    'the whole feed of the same database, where copies must be signed': [leaveWindow, UNSIGNED, SIGNED],
    'another database whose copy lacks most titles': [
      async () => {
        await becomeOther();
        await world.host.publish(world.service, privateKey);
      },
      MOST,
      SIGNED,
    ],
    'a copy of the same feed that lacks most titles': [
      async () => {
        await leaveWindow();
        await lose(20);
        await world.host.publish(world.service);
      },
      MOST,
    ],
    'the whole feed of the same database that lacks most titles': [
      async () => {
        await leaveWindow();
        await lose(20);
      },
      MOST,
    ],
  };

  for (const [what, [arrange, reason, options = {}]] of Object.entries(CASES)) {
    it(`a mirror keeps its rows although it is led to ${what}`, async () => {
      await addTitles(world.service.db, TITLES);
      await world.succeed();
      await arrange();
      const said = await assertKept(reason, () => failSoon(options));
      if (reason === UNSIGNED) assert.doesNotMatch(said, /loading/);
    });
  }

  it('a mirror that must not load the unsigned feed does not begin with it either', async () => {
    await addTitles(world.service.db, TITLES);
    assert.match(await world.fail(...signed), UNSIGNED);
    assert.equal(await world.state(), undefined);
  });

  it('a mirror follows another feed once a signed copy names it, and loads the whole feed of its own again', async () => {
    await addTitles(world.service.db, TITLES);
    await world.succeed();
    await leaveWindow();
    assert.match(await world.succeed(), /Loaded the whole feed: 0 inserted, 30 changed, 0 deleted\./);
    await becomeOther(1);
    const signedCopy = await world.host.publish(world.service, privateKey);
    // A signature covers the feed.
    for (const altered of [withoutFeed(signedCopy), { ...signedCopy, feed_id: crypto.randomUUID() }]) {
      world.host.files.set(MANIFEST_NAME, Buffer.from(JSON.stringify(altered)));
      await assertKept(/The signature of the manifest does not match/, () => world.fail(...signed));
    }
    world.host.files.set(MANIFEST_NAME, Buffer.from(JSON.stringify(signManifest(signedCopy, privateKey))));
    const { code, stderr } = await world.run('verify');
    assert.equal(code, 1);
    assert.match(stderr, /The mirror follows the feed \S{36}, but this copy belongs to the feed \S{36}\./);
    assert.match(await world.succeed(...signed), /Loaded the copy of .*: 0 inserted, 0 changed, 1 deleted\./);
    await world.requireEqual();
  });

  it('a load that removes up to a tenth of the rows, rounded up, but not all of them, needs no permission', async () => {
    for (const [rows, lost, isAllowed] of [
      [30, 3, true],
      [30, 4, false],
      [11, 2, true],
      [11, 3, false],
      [5, 1, true],
      [5, 2, false],
      [1, 1, false],
    ] as const) {
      await addTitles(world.service.db, rows);
      await world.succeed();
      await becomeOther(lost);
      await world.host.publish(world.service);
      const what = `${lost} of ${rows}`;
      if (isAllowed) {
        assert.match(await world.succeed(), new RegExp(`, ${lost} deleted\\.`), what);
      } else {
        const removes = new RegExp(`would remove ${lost} of the mirror's ${rows} rows?,`);
        await assertKept(removes, () => world.fail());
        assert.match(await world.succeed('--allow-removals'), new RegExp(`, ${lost} deleted\\.`), what);
      }
      assert.equal(await world.requireEqual(), rows - lost, what);
      await world.reset();
    }
  });

  it('a repair by a copy that lacks most rows removes none of them without permission, and is of the same feed', async () => {
    await addTitles(world.service.db, TITLES);
    await world.succeed();
    await lose(20);
    await world.service.db('titles').where({ svc_id: 'title-0001' }).update({ title: 'Newer than what is lost' });
    await world.succeed();
    await world.setClock(DAY / 24n);
    await world.host.publish(world.service);
    const repair = async (...flags: string[]): Promise<string> => {
      const { code, stderr } = await world.run('verify', '--repair', ...flags);
      assert.equal(code, 1, stderr);
      return stderr;
    };
    await assertKept(MOST, () => repair());
    await publishAltered(withoutFeed);
    const [feed = ''] = await world.service.db('catalog_feed').pluck<string[]>('identity');
    await world.service.db.raw('update catalog_feed set identity = gen_random_uuid()');
    await assertKept(/The mirror belongs to the feed \S{36}, but the service now has the feed/, () =>
      repair('--allow-removals'),
    );
    await world.service.db('catalog_feed').update({ identity: feed });
    const { code, stderr } = await world.run('verify', '--repair', '--allow-removals');
    assert.equal(code, 0, stderr);
    assert.equal(await world.requireEqual(), 10);
    assert.match((await world.run('verify', '--allow-removals')).stderr, /--allow-removals requires --repair\./);
  });

  it('a running mirror that is led to another feed is not ready, says what to do, and continues with a copy of it', async () => {
    await addTitles(world.service.db, TITLES);
    const port = await freePort();
    const program = await world.start('--metrics-address', `127.0.0.1:${port}`);
    const isReady = async (): Promise<boolean> => (await fetch(`http://127.0.0.1:${port}/readyz`)).status === 200;
    try {
      await eventually('it is ready', isReady);
      // Its position is now that of a page, no longer that of the copy.
      await addTitles(world.service.db, 1, 'later');
      await eventually('it has the page', world.isEqual);
      const before = await contents();
      await becomeOther(1);
      await eventually('it says what to do', () => NO_COPY.test(program.output.stderr));
      assert.equal(await isReady(), false);
      assert.deepEqual(await contents(), before);
      await world.host.publish(world.service);
      await eventually('it is ready again', isReady);
      await world.requireEqual();
    } finally {
      assert.equal((await program.stop()).code, 0);
    }
  });

  it('a page that names no feed is not stored by a mirror that follows one', async () => {
    await addTitles(world.service.db, TITLES);
    await world.succeed();
    const page = { data: [], meta: { has_more: false, next_since: 1 } };
    await assertKept(/The response does not name its feed\. Gave up/, () =>
      failSoon({ fetchPage: () => Promise.resolve({ page }) }),
    );
  });
});
