import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { findDeveloperOf } from '../../src/accounts/identities.js';
import { addPasskey } from '../../src/accounts/passkeys.js';
import { findSession, startSession } from '../../src/accounts/sessions.js';
import { spendLink } from '../../src/accounts/sign-in-links.js';
import { createKey, type CreatedKey } from '../../src/keys/keys.js';
import { somePublicKey } from '../support/http/authenticator.js';
import { runCommand, runWithoutRedis } from '../support/programs/command.js';
import { expireIn } from '../support/keys/expiry.js';
import { forgeKey } from '../support/keys/forged-key.js';
import { findCaller } from '../support/keys/find-caller.js';
import type { Outcome } from '../support/program.js';
import { testWorld } from '../support/world.js';

interface Developer {
  readonly developer: Readonly<Record<string, unknown>>;
}

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;

describe('the commands for developers, keys and sign-in', () => {
  const world = testWorld();
  let developerId: number;

  before(async () => (developerId = await world.newDeveloper('P')));

  /** Runs a command line, split at spaces. */
  function catalog(line: string, input?: string): Promise<Outcome> {
    return runWithoutRedis(line.split(' '), world.url, input);
  }

  /** Runs a command that must succeed. @returns what it printed */
  async function output(line: string, input?: string): Promise<string> {
    const { code, stdout, stderr } = await catalog(line, input);
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    return stdout;
  }

  async function json<T = Record<string, unknown>>(line: string): Promise<T> {
    return JSON.parse(await output(`${line} --json`)) as T;
  }

  /** Runs a command that must fail with a code and a message, and print nothing. */
  async function assertFails(line: string, code: number, message: RegExp, input?: string): Promise<void> {
    const { stderr, ...rest } = await catalog(line, input);
    assert.deepEqual(rest, { code, stdout: '' }, line);
    assert.match(stderr, message);
  }

  function newKey(): Promise<CreatedKey> {
    return createKey(world.db, { developerId, planId: 'free', label: 'staging' });
  }

  async function isActive(key: string): Promise<boolean> {
    return (await findCaller(world.db, key)) !== undefined;
  }

  it('commands take a developer and a key through their whole life', async () => {
    const { developer } = await json<Developer>('developers create --project-name Club --attribution-required');
    const { id, created_at: createdAt, ...rest } = developer;
    assert.match(String(createdAt), TIMESTAMP);
    assert.deepEqual(rest, {
      project_name: 'Club',
      plan_id: 'free',
      attribution_required: true,
      suspended_at: null,
    });

    const key = await json(`keys create --developer ${String(id)} --plan free --label production`);
    assert.match(String(key.key), /^svc_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}$/);
    const prefix = String(key.key_prefix);
    assert.ok(String(key.key).startsWith(`${prefix}_`));
    const { key: _, ...record } = key;
    const { created_at: keyCreatedAt, ...members } = record;
    assert.match(String(keyCreatedAt), TIMESTAMP);
    assert.deepEqual(members, {
      developer_id: id,
      expires_at: null,
      key_prefix: prefix,
      label: 'production',
      last_used_at: null,
      plan_id: 'free',
      revoked_at: null,
      state: 'active',
      successor: null,
      successor_active: null,
    });
    const table = await output(`keys list --developer ${String(id)}`);
    assert.match(table, new RegExp(`^${prefix} +${String(id)} +free +production +\\S+ +- +- +active$`, 'm'));
    assert.ok(!table.includes(String(key.key)));

    assert.match(await output(`developers suspend ${String(id)}`), /^Suspended developer/);
    const suspended = await json<Developer>(`developers suspend ${String(id)}`);
    assert.match(String(suspended.developer.suspended_at), TIMESTAMP);
    assert.match(await output(`keys list --developer ${String(id)}`), /production .* suspended$/m);
    const create = await catalog(`keys create --developer ${String(id)} --plan free --json`);
    assert.equal(
      create.stderr,
      `catalog: Developer ${String(id)} is suspended: the key is rejected until "catalog developers reinstate ${String(id)}".\n`,
    );
    assert.equal((JSON.parse(create.stdout) as { state: string }).state, 'suspended');
    const reinstated = await json<Developer>(`developers reinstate ${String(id)}`);
    assert.equal(reinstated.developer.suspended_at, null);

    const toScale = `keys set-plan ${prefix} --plan scale`;
    assert.equal(await output(toScale), `Moved ${prefix} from plan free to scale. The new limits apply from now on.\n`);
    assert.equal(await output(toScale), `Key ${prefix} is already on plan scale.\n`);
    assert.deepEqual(await json(`keys set-plan ${prefix} --plan free`), { ...record, changed: true });

    assert.equal(await output(`keys revoke ${prefix}`), `Revoked ${prefix}. Requests with it fail from now on.\n`);
    assert.match(String((await json(`keys revoke ${prefix}`)).revoked_at), TIMESTAMP);
    assert.match(
      await output(`keys revoke ${prefix}`),
      new RegExp(`^${prefix} was already revoked at \\d{4}-\\S+Z\\.\n$`),
    );
    const advice = `Create a new one: "catalog keys create --developer ${String(id)} --plan free".`;
    await assertFails(
      `keys set-plan ${prefix} --plan pro`,
      1,
      new RegExp(`^catalog: Key ${prefix} is revoked and cannot be changed\\. ${advice}\n$`),
    );
  });

  it('a name with control characters, written by SQL, is shown without them', async () => {
    await world
      .db('developers')
      .insert({ project_name: 'Film \u001b[31mclub \u202E\u2069', attribution_required: false });
    assert.match(await output('developers list'), /Film \uFFFD\[31mclub \uFFFD\uFFFD/);
  });

  it('lists fit into a terminal of 80 columns, with ages in place of times', async () => {
    const { db } = world;
    const id = await world.newDeveloper('A film club whose name is too long for its column');
    const { prefix } = await createKey(db, {
      developerId: id,
      planId: 'free',
      label: 'a label for 60 characters, which is cut to fit into the line',
    });
    const ago = (interval: string): Knex.Raw => db.raw('now() - ?::interval', [interval]);
    await db('api_keys')
      .where({ prefix })
      .update({ created_at: ago('1000 days'), last_used_at: ago('90 seconds'), expires_at: ago('-3 hours') });
    const { prefix: rolled } = await createKey(db, { developerId: id, planId: 'free' });
    await output(`keys roll ${rolled} --overlap 90d`);
    for (const args of [['keys', 'list'], ['developers', 'list'], ['events']]) {
      const { code, stdout } = await runCommand(args, { DATABASE_URL: world.url }, '', { columns: 80 });
      assert.equal(code, 0);
      assert.deepEqual(stdout.match(/^.{81,}$/gm), null, args.join(' '));
    }
    const { stdout } = await runCommand(['keys', 'list', '--developer', String(id)], { DATABASE_URL: world.url }, '', {
      columns: 100,
    });
    assert.match(stdout, new RegExp(`^${prefix} +${id} +free +a label .*… +3y ago +2m ago +in 3h +active$`, 'm'));
    assert.match(stdout, new RegExp(`^${rolled} +${id} +free +- +just now +- +in 90d +rolled to`, 'm'));
  });

  it('a command that names something unknown fails with code 1 and explains how to list it', async () => {
    for (const [line, message] of [
      ['keys list --developer 999', /^catalog: There is no developer 999\..*developers list/],
      ['events --developer 999', /^catalog: There is no developer 999\..*developers list/],
      ['usage --developer 999', /^catalog: There is no developer 999\..*developers list/],
      ['developers rename 999 x', /^catalog: There is no developer 999\..*developers list/],
      ['developers suspend 999', /^catalog: There is no developer 999\..*developers list/],
      ['keys revoke svc_aaaaaaaa', /^catalog: No key has the prefix "svc_aaaaaaaa"\..*keys list/],
      ['keys create --developer 1 --plan no', /^catalog: There is no plan "no"\..*plans list/],
      ['developers set-plan 1 --plan gone', /^catalog: There is no plan "gone"\..*plans list/],
      ['developers sign-in-link 999', /^catalog: There is no developer 999\..*developers list/],
      ['developers passkeys 999', /^catalog: There is no developer 999\..*developers list/],
      ['developers remove-passkey 1 999', /^catalog: Developer 1 has no passkey 999\..*developers passkeys 1/],
      ['developers sign-out 999', /^catalog: There is no developer 999\./],
      [
        'developers unlink 1 --issuer https://id.example --subject gone',
        /^catalog: Developer 1 has no such identity\..*developers identities 1/,
      ],
    ] as const) {
      await assertFails(line, 1, message);
    }
  });

  it('a key expires after a time or at a time, and is printed once', async () => {
    const create = `keys create --developer ${developerId} --plan free`;
    const { created_at, expires_at } = await json(`${create} --expires 90d`);
    assert.equal(Date.parse(String(expires_at)) - Date.parse(String(created_at)), 90 * 86_400_000);
    assert.equal((await json(`${create} --expires 2100-01-31T18:30Z`)).expires_at, '2100-01-31T18:30:00.000000Z');
    assert.match(
      await output(`${create} --expires 2100-02-28`),
      /^Created svc_\w{8} on plan free; it expires at 2100-02-28T00:00:00Z\. The key is shown only once/,
    );
    assert.equal((await json(`${create} --expires never`)).expires_at, null);
    await assertFails(`${create} --expires 2020-01-01`, 2, /It is in the past\. Use a duration such as 90d/);
    await assertFails(`${create} --expires 99999d`, 2, /at most 36500d/);
    for (const when of ['90', '0d', '99999d', '2020-01-01', '2100-02-30', '2100-13-01', '2100-01-31T18:30', '']) {
      await assertFails(`${create} --expires ${when}`, 2, /Use a (?:duration such as 90d|number with s, m, h or d)/);
    }
  });

  it('a rolled key is accepted until the end of the overlap, and its successor is printed once', async () => {
    const old = await newKey();
    const stdout = await output(`keys roll ${old.prefix} --overlap 24h`);
    const [, until = '', successor = '', key = ''] =
      /^Rolled svc_\w{8}\. The old key is accepted until (\S+)\. Its successor (svc_\w{8}) is shown only once:\n {2}(\S+)\n$/.exec(
        stdout,
      ) ?? assert.fail(stdout);
    const left = Date.parse(until) - Date.now();
    assert.ok(left > 86_390_000 && left <= 86_400_000, until);
    assert.deepEqual([await isActive(old.key), await isActive(key)], [true, true]);
    assert.ok(key.startsWith(`${successor}_`));
    const table = await output(`keys list --developer ${developerId}`);
    assert.match(table, new RegExp(`^${old.prefix} .* rolled to ${successor}$`, 'm'));
    assert.match(table, new RegExp(`^${successor} .* staging .* active$`, 'm'));
  });

  it('a key that is rolled with the overlap "now" ends at once and cannot be rolled again', async () => {
    const [old, second] = [await newKey(), await newKey()];
    const roll = `keys roll ${old.prefix} --overlap now`;
    assert.match(await output(roll), /\. The old key is refused from now on\. Its successor /);
    assert.equal(await isActive(old.key), false);
    await assertFails(
      roll,
      1,
      /^catalog: Key svc_\w{8} has already been replaced by svc_\w{8}\. Roll that key instead\./,
    );
    const document = await json(`keys roll ${second.prefix} --overlap 0s`);
    assert.equal(await isActive(String(document.key)), true);
    assert.deepEqual(
      [document.state, document.label, (document.predecessor as Record<string, unknown>).state],
      ['active', 'staging', 'expired'],
    );
    await assertFails('keys roll svc_aaaaaaaa', 2, /required option '--overlap <duration>'/);
    await assertFails('keys roll svc_aaaaaaaa --overlap 24', 2, /Use a number with s, m, h or d, such as 24h/);
  });

  it('"keys set-label" changes and removes the label of an active key', async () => {
    const { key, prefix } = await newKey();
    const label = (...args: string[]) => runWithoutRedis(['keys', 'set-label', prefix, ...args], world.url);
    assert.equal((await label('eu west')).stdout, `Key ${prefix} now has the label "eu west".\n`);
    assert.equal((await label(' eu west ')).stdout, `Key ${prefix} already has the label "eu west".\n`);
    assert.match(await output(`keys list --developer ${developerId}`), new RegExp(`^${prefix} .* eu west `, 'm'));
    const { changed, label: removed } = JSON.parse((await label('', '--json')).stdout) as Record<string, unknown>;
    assert.deepEqual([changed, removed], [true, null]);
    assert.equal((await label('')).stdout, `Key ${prefix} already has no label.\n`);
    await assertFails(`keys set-label ${prefix} ${'x'.repeat(201)}`, 2, /Use 1 to 200 characters/);
    const cut = prefix + String.raw`_\[redacted\]`;
    const refused = (what: string) =>
      new RegExp(`'${cut}' is invalid.* This looks like an API key\\. ${what} are not secret`);
    await assertFails(`keys set-label ${prefix} ${key}`, 2, refused('Labels'));
    await assertFails(`developers rename 1 ${key}`, 2, refused('Project names'));
    await output(`keys revoke ${prefix}`);
    await assertFails(`keys set-label ${prefix} late`, 1, /^catalog: Key svc_\w{8} is revoked and cannot be changed\./);
  });

  it('"keys set-expiry" moves the expiry of an active key, and never revives an expired one', async () => {
    const { prefix, key } = await newKey();
    const setExpiry = `keys set-expiry ${prefix}`;
    assert.equal(await output(`${setExpiry} never`), `Key ${prefix} already never expires.\n`);
    assert.equal(
      await output(`${setExpiry} 2100-01-31T18:30Z`),
      `Key ${prefix} now expires at 2100-01-31T18:30:00Z.\n`,
    );
    assert.equal(
      await output(`${setExpiry} 2100-01-31T18:30Z`),
      `Key ${prefix} already expires at 2100-01-31T18:30:00Z.\n`,
    );
    const { expires_at, changed } = await json(`${setExpiry} 90d`);
    assert.equal(changed, true);
    assert.ok(Math.abs(Date.parse(String(expires_at)) - Date.now() - 90 * 86_400_000) < 3_600_000);
    assert.equal(await output(`${setExpiry} never`), `Key ${prefix} now never expires.\n`);
    for (const when of ['now', '0d', '2020-01-01']) {
      await assertFails(`${setExpiry} ${when}`, 2, /Use a duration such as 90d or 12h, .*, or "never"/);
    }
    assert.equal(await isActive(key), true);
    await expireIn(world.db, prefix, 0);
    const advice = `Create a new one: "catalog keys create --developer ${developerId} --plan free".`;
    for (const edit of [`${setExpiry} never`, `keys set-plan ${prefix} --plan pro`]) {
      await assertFails(
        edit,
        1,
        new RegExp(`^catalog: Key ${prefix} has expired and cannot be changed\\. ${advice}\n$`),
      );
    }
    assert.equal(await isActive(key), false);
  });

  it('commands for one key refuse a whole key as an argument, without repeating it', async () => {
    const { key, prefix } = await newKey();
    for (const [name, options] of [
      ['revoke', ''],
      ['roll', ' --overlap now'],
      ['set-plan', ' --plan pro'],
      ['set-label', ' x'],
      ['set-expiry', ' 90d'],
    ] as const) {
      const { code, stdout, stderr } = await catalog(`keys ${name} ${key}${options}`);
      assert.deepEqual({ code, stdout }, { code: 2, stdout: '' });
      assert.match(stderr, new RegExp(`use only the prefix, ${prefix}: other users of this machine can see`));
      assert.ok(!stderr.includes(key.slice(prefix.length + 1)), 'the key was repeated');
      assert.equal(await isActive(key), true);
      await assertFails(`keys ${name} ${prefix}x${options}`, 2, /the prefix of a key is svc_ and 8 letters and digits/);
    }
  });

  it('"keys revoke -" revokes the key whose prefix or whole text is on standard input, and no truncated or forged key', async () => {
    const { key, prefix } = await newKey();
    for (const input of [key.slice(0, -1), '', 'x'.repeat(10_000)]) {
      await assertFails('keys revoke -', 2, /neither the prefix of a key nor a whole key/, input);
    }
    await assertFails('keys revoke -', 1, /^catalog: This is not a key of this service\. Check/, forgeKey(prefix));
    assert.equal(await isActive(key), true);
    const named = await newKey();
    for (const [record, input] of [
      [{ key, prefix }, `  ${key}\r\nmore\n`],
      [named, named.prefix],
    ] as const) {
      const printed = await output('keys revoke -', input);
      assert.equal(printed, `Revoked ${record.prefix}. Requests with it fail from now on.\n`);
      assert.equal(await isActive(record.key), false);
    }
  });

  it('"developers rename" gives a project another name, which servers use for /me', async () => {
    const id = await world.newDeveloper('Old');
    const rename = (...args: string[]) => runWithoutRedis(['developers', 'rename', String(id), ...args], world.url);
    assert.equal(
      (await rename('Film club Berlin')).stdout,
      `Renamed the project of developer ${id} to "Film club Berlin".\n`,
    );
    const { key } = await createKey(world.db, { developerId: id, planId: 'free' });
    assert.equal((await findCaller(world.db, key))?.projectName, 'Film club Berlin');
    const { developer } = JSON.parse((await rename('Kino', '--json')).stdout) as Developer;
    assert.equal(developer.project_name, 'Kino');
    const { events } = await json<{ events: { kind: string; details: object }[] }>(`events --developer ${id}`);
    assert.deepEqual(
      events.filter(({ kind }) => kind === 'renamed').map(({ details }) => details),
      [
        { from: 'Film club Berlin', to: 'Kino' },
        { from: 'Old', to: 'Film club Berlin' },
      ],
    );
    assert.equal((await rename('')).code, 2);
  });

  it('"events" lists the events of one developer or of all, newest first', async () => {
    const id = await world.newDeveloper();
    const { prefix } = await createKey(world.db, { developerId: id, planId: 'free' });
    await catalog(`keys set-plan ${prefix} --plan pro`);
    await catalog(`keys revoke ${prefix}`);
    assert.match(
      await output(`events --developer ${id}`),
      new RegExp(
        `^at +developer +event +key +by +details\n\\S+Z +${id} +revoked +${prefix} +operator +-\n` +
          `\\S+Z +${id} +plan changed +${prefix} +operator +from free, to pro\n` +
          `\\S+Z +${id} +created +${prefix} +operator +plan free\n\\S+Z +${id} +registered +- +operator +plan free\n$`,
      ),
    );
    const { events } = await json<{ events: Record<string, unknown>[] }>('events --limit 2');
    assert.deepEqual(
      events.map(({ at, ...event }) => [typeof at, event]),
      [
        ['revoked', {}],
        ['plan_changed', { from: 'free', to: 'pro' }],
      ].map(([kind, details]) => [
        'string',
        { developer_id: id, kind, actor: 'operator', key_prefix: prefix, key_label: null, details },
      ]),
    );
  });

  it('a sign-in link begins with the public URL, or with the address of this machine', async () => {
    const link = `developers sign-in-link ${developerId}`.split(' ');
    const run = (args: readonly string[], environment: Record<string, string>): Promise<Outcome> =>
      runCommand(args, { DATABASE_URL: world.url, ...environment });
    const { stdout } = await run(link, { PUBLIC_URL: 'https://catalog.example/' });
    const token = /^ {2}https:\/\/catalog\.example\/sign-in\/link\/([0-9a-f]{64})$/m.exec(stdout)?.[1];
    assert.equal(await spendLink(world.db, 'developer', token), developerId);
    const local = await run([...link, '--json'], { HOST: '0.0.0.0', PORT: '9000' });
    const { url, ...rest } = JSON.parse(local.stdout) as { url: string };
    assert.equal(local.stderr, 'catalog: PUBLIC_URL is not set here: the link works only on this machine.\n');
    assert.match(url, /^http:\/\/localhost:9000\/sign-in\/link\/[0-9a-f]{64}$/);
    assert.deepEqual(rest, { developer_id: developerId, expires_in_seconds: 600 });
    const off = await run(link, { SITE: 'off' });
    assert.deepEqual([off.code, off.stdout], [1, '']);
    assert.match(off.stderr, /^catalog: There are no developer settings to sign in to: SITE is off\./);
    assert.deepEqual(await run(link, { PORT: '0' }), {
      code: 1,
      stdout: '',
      stderr: 'catalog: Set PUBLIC_URL: with PORT 0 the server chooses its own port.\n',
    });
  });

  it('an identity is linked, listed and unlinked, which ends the sessions of its developer', async () => {
    const id = await world.newDeveloper();
    const identity = { issuer: 'https://id.example', subject: 'abc' };
    const options = `${id} --issuer ${identity.issuer} --subject ${identity.subject}`;
    assert.equal(
      await output(`developers link ${options}`),
      `Linked developer ${id}: this identity can now sign in as that developer.\n`,
    );
    assert.equal(await findDeveloperOf(world.db, identity), id);
    await assertFails(
      `developers link ${id} --issuer id.example --subject abc`,
      2,
      /^catalog: error: option '--issuer <url>' argument 'id\.example' is invalid\. It must be the https:\/\/ URL of your provider/,
    );
    assert.deepEqual(await json(`developers link ${options}`), { developer_id: id, ...identity });
    assert.match(
      await output(`developers identities ${id}`),
      /^issuer +subject +linked\nhttps:\/\/id\.example +abc +\d{4}-\d\d-\d\dT[\d:]+Z\n$/,
    );
    const { identities } = await json<{ identities: object[] }>(`developers identities ${id}`);
    assert.deepEqual(identities.map(Object.keys), [['issuer', 'subject', 'linked_at']]);
    await startSession(world.db, { developerId: id, way: 'link', userAgent: '', replaced: undefined });
    const unlink = `developers unlink ${options}`;
    const passkeys = `Passkeys can still sign in: see "catalog developers passkeys ${id}".\n`;
    assert.equal(await output(unlink), `Unlinked the identity and ended 1 session of developer ${id}. ${passkeys}`);
    await output(`developers link ${options}`);
    assert.deepEqual(await json(unlink), { developer_id: id, ...identity, sessions_ended: 0 });
    const token = await startSession(world.db, { developerId: id, way: 'link', userAgent: '', replaced: undefined });
    assert.equal(await output(`developers sign-out ${id}`), `Ended 1 session of developer ${id}. ${passkeys}`);
    assert.equal(await findSession(world.db, token), undefined);
  });

  it('"developers passkeys" lists passkeys, and "developers remove-passkey" removes one and ends all sessions', async () => {
    const id = await world.newDeveloper();
    const passkey = await addPasskey(
      world.db,
      { developerId: id },
      { ...somePublicKey({ isSynced: true }), name: 'My phone' },
    );
    assert.match(
      await output(`developers passkeys ${id}`),
      new RegExp(`^passkey +name +synced +created +last used\n${passkey} +My phone +yes +\\d{4}-\\S+Z +-\n$`),
    );
    const { passkeys } = await json<{ passkeys: object[] }>(`developers passkeys ${id}`);
    assert.deepEqual(passkeys.map(Object.keys), [['id', 'name', 'is_synced', 'created_at', 'last_used_at']]);
    const token = await startSession(world.db, { developerId: id, way: 'passkey', userAgent: '', replaced: undefined });
    const remove = `developers remove-passkey ${id} ${passkey}`;
    await assertFails(`developers remove-passkey ${developerId} ${passkey}`, 1, /has no passkey/);
    assert.notEqual(await findSession(world.db, token), undefined);
    assert.equal(await output(remove), `Removed passkey ${passkey} and ended 1 session of developer ${id}.\n`);
    assert.equal(await findSession(world.db, token), undefined);
    const [, removed] = (await json<{ events: { kind: string; actor: string }[] }>(`events --developer ${id}`)).events;
    assert.deepEqual([removed?.kind, removed?.actor], ['passkey_removed', 'operator']);
  });
});
