import assert from 'node:assert/strict';
import pg from 'pg';
import { fileURLToPath } from 'node:url';
import { prepareDemo } from '../../src/commands/server/demo.js';
import { createSignInLink } from '../../src/accounts/sign-in-links.js';
import { listDevelopers } from '../../src/developers/developers.js';
import { listEvents } from '../../src/events/events.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { eventually } from '../support/eventually.js';
import { readGuide, ROOT } from '../support/guides.js';
import { addresses } from '../support/http/addresses.js';
import { Authenticator, type Options } from '../support/http/authenticator.js';
import type { ServerProcess } from '../support/program.js';
import { runCommand } from '../support/programs/command.js';
import { send } from '../support/request.js';
import { testWorld } from '../support/world.js';
import { startReceiver, type Receiver } from '../notices/receiver.js';
import { FORMS, settingsPages, UNKNOWN } from '../pages/pages.js';
import { Person, startProvider } from '../pages/settings/oidc-service.js';

const PREFIX = /svc_\w{8}/;
const KEY = /svc_\w{47}/;

/** Rows that a server removes sooner or later, by table, and how to find them. */
const OLD_ROWS = {
  sign_in_links: [
    "(hash, developer_id, expires_at) select sha256('old'), min(id), '2020-01-01Z' from developers",
    'expires_at',
  ],
  sign_ups: [
    "(hash, issuer, subject, expires_at) values (sha256('old'), 'https://i', 's', '2020-01-01Z')",
    'expires_at',
  ],
  passkey_challenges: ["(hash, expires_at) values (sha256('old'), '2020-01-01Z')", 'expires_at'],
  spent_sign_ins: ["(hash, expires_at) values (sha256('old'), '2020-01-01Z')", 'expires_at'],
  sessions: [
    "(hash, developer_id, user_agent, signed_in_at) select sha256('old'), min(id), '', '2020-01-01Z' from developers",
    'signed_in_at',
  ],
  api_key_outcomes: ["select id, '2020-01-01Z', 'getMe', 'success', 1 from api_keys", 'hour'],
  developer_usage: ["values (1, 'day', '2020-01-01Z', 1, 0, 0, 0)", 'start'],
  failed_requests: [
    `(developer_id, key_id, at, request_id, method, path, operation, status, code, detail, duration_ms)
     select developer_id, id, '2020-01-01Z', '', 'GET', '/', '', 404, '', '', 1 from api_keys`,
    'at',
  ],
  notices: ["(type, subject, data, created_at) values ('notice.test', 's', '{}', '2020-01-01Z')", 'created_at'],
  events: ["(at, developer_id, kind, actor) values ('2020-01-01Z', 1, 'registered', 'operator')", 'at'],
} as const;

describe('a server whose role is a member of catalog_server', () => {
  const world = testWorld({ redis: true });
  let server: ServerProcess;
  let key: string;
  let prefix: string;
  let serverUrl: string;
  let receiver: Receiver;
  let identities: Awaited<ReturnType<typeof startProvider>>;

  before(async () => {
    const { db } = world;
    const [, section = assert.fail()] = (await readGuide('configure')).split('\n### Database roles\n');
    const creation = /```sql\n([\s\S]+?)```/.exec(section)?.[1] ?? assert.fail();
    await db.raw(creation.replace('…', 'secret'));
    await db.raw('alter role catalog_web set search_path = catalog_web');
    await prepareDemo(db, fileURLToPath(ROOT).replace(/\/$/, ''));
    ({ key, prefix } = await world.newKey({ planId: 'free' }));
    for (const [table, [rows]] of Object.entries(OLD_ROWS)) await db.raw(`insert into ${table} ${rows}`);
    await db('caller_changes').insert({ developer_id: -1 });
    await db.raw("insert into caller_changes_horizon (txid, set_at) select pg_current_xact_id(), '2020-01-01Z'");
    await db.raw("insert into usage_log select id, date_trunc('hour', now(), 'UTC'), '', 'success', 1 from api_keys");
    const url = new URL(world.url);
    url.username = 'catalog_web';
    url.password = 'secret';
    serverUrl = url.href;
    world.defer(() => db.raw('drop role catalog_web'));
    identities = await startProvider('on', 'localhost');
    world.defer(() => identities.provider.stop());
    receiver = await startReceiver(world);
    const settings = { ...identities.settings, ...receiver.settings, SITE: 'on', DATABASE_URL: serverUrl };
    server = await world.startServer(settings);
    assert.equal(await statusOf('/api/v1/me'), 200);
  });

  async function statusOf(path: string): Promise<number> {
    return (await send(server.url, path, { headers: { 'x-api-key': key } })).status;
  }

  it('a server that is a member of catalog_server answers every operation', async () => {
    for (const seconds of [-60, -20 * 86_400, 30]) {
      const since = String(Math.floor(Date.now() / 1000) + seconds);
      for (const address of Object.values(addresses({ since }))) assert.equal(await statusOf(address), 200, address);
    }
  });

  it('a command that the role of the servers may not run names what is needed, and leaves the statement out', async () => {
    assert.deepEqual(await runCommand(['developers', 'suspend', '1'], { DATABASE_URL: serverUrl }), {
      code: 1,
      stdout: '',
      stderr:
        'catalog: The role in DATABASE_URL may not do this: permission denied for table developers. Run the command as the owner of the tables.\n',
    });
  });

  it('a server that is a member of catalog_server serves every form and every page behind sign-in', async () => {
    const { provider } = identities;
    const ann = new Person(server, provider, 'ann');
    const posted = new Set<string>();
    /** Opens a page and sends its form, with the hidden fields that the page gives. */
    async function submit(path: string, fields: Record<string, string> = {}, page = path): Promise<string> {
      const { text } = await ann.here.get(page);
      const hidden = [...text.matchAll(/type="hidden" name="(\w+)" value="(\w+)"/g)].map(([, name, value]) => [
        name,
        value,
      ]);
      const reply = await ann.here.post(path, { ...(Object.fromEntries(hidden) as Record<string, string>), ...fields });
      assert.ok([200, 303].includes(reply.status), `${path} ${reply.status} ${reply.text}`);
      posted.add(path.replace(PREFIX, UNKNOWN.prefix));
      return reply.text;
    }

    await ann.signIn();
    await submit('/sign-up', { project_name: 'Own' });
    const { id = 0 } = (await listDevelopers(world.db)).at(-1) ?? {};
    const created = await submit('/settings/keys/new', { label: 'a', lifetime: '30' });
    const [made = assert.fail()] = PREFIX.exec(created) ?? [];
    for (const path of [...settingsPages(made), '/settings/usage.csv']) {
      assert.equal((await ann.here.get(path)).status, 200, path);
    }
    await submit(`/settings/keys/${made}/label`, { label: 'b' });
    await submit(`/settings/keys/${made}/expiry`, { lifetime: '90' });
    // The successor keeps a plan that is not its developer's.
    await world.db('api_keys').where({ prefix: made }).update({ plan_id: 'pro' });
    const [successor = assert.fail()] = KEY.exec(await submit(`/settings/keys/${made}/roll`, { overlap: '1h' })) ?? [];
    await submit(`/settings/keys/${made}/revoke`);
    await submit('/revoke-leaked-key', { key: successor });
    const authenticator = new Authenticator(identities.settings.PUBLIC_URL ?? '');
    const newPasskey = authenticator.create(JSON.parse(await submit('/settings/passkeys/new/options')) as Options);
    await submit('/settings/passkeys/new', { credential: newPasskey, name: 'Laptop' });
    await submit('/settings/sessions/end', {}, '/settings/sessions');
    const signature = authenticator.get(JSON.parse(await submit('/sign-in/passkey/options')) as Options);
    await submit('/sign-in/passkey', { credential: signature });
    const [passkey = assert.fail()] = await world.db('passkeys').where({ developer_id: id }).pluck<number[]>('id');
    await submit('/settings/passkeys/remove', {}, `/settings/passkeys/remove?passkey=${passkey}`);
    await submit('/settings/sessions/end', {}, '/settings/sessions');
    await ann.signIn();
    await submit('/settings/sessions/end-others');
    await submit('/sign-in/link', {}, `/sign-in/link/${await createSignInLink(world.db, id)}`);
    await submit('/sign-out');
    assert.deepEqual([...posted].sort(), ['/sign-up', ...FORMS].sort());
    assert.deepEqual(
      (await listEvents(world.db, { developerId: id, limit: 100 })).map(({ kind, actor }) => `${kind} by ${actor}`),
      [
        'signed_out by developer',
        'signed_in by developer',
        'signed_in by developer',
        'signed_out by developer',
        'passkey_removed by developer',
        'signed_in by developer',
        'signed_out by developer',
        'passkey_added by developer',
        'revoked by finder',
        'revoked by developer',
        'rolled by developer',
        'created by developer',
        'plan_changed by operator',
        'expiry_changed by developer',
        'label_changed by developer',
        'created by developer',
        'signed_in by developer',
        'identity_linked by developer',
        'registered by developer',
      ],
    );
  });

  it('a server that is a member of catalog_server sends notices', async () => {
    await receiver.get('key.leaked');
  });

  it('a server that is a member of catalog_server cannot suspend developers, give them plans, change events, or let an operator in', async () => {
    const client = new pg.Client({ connectionString: serverUrl, options: '-c search_path=public' });
    await client.connect();
    try {
      for (const sql of [
        'update developers set suspended_at = now()',
        "insert into developers (project_name, plan_id) values ('P', 'pro')",
        "update api_keys set plan_id = 'pro'",
        `insert into api_keys (prefix, hash, developer_id, plan_id)
         select 'svc_00000000', sha256('a'), developer_id, 'pro' from api_keys where prefix = '${prefix}'`,
        "insert into events (developer_id, kind, actor, at) values (1, 'revoked', 'operator', '2020-01-01Z')",
        'update events set actor = $$system$$',
        'delete from events',
        "insert into sign_in_links (hash, kind, expires_at) values (sha256('a'), 'operator', now())",
        "update sign_in_links set kind = 'operator', developer_id = null",
        "update sign_in_links set hash = sha256('a')",
      ]) {
        await assert.rejects(client.query(sql), { code: '42501' }, sql);
      }
    } finally {
      await client.end();
    }
  });

  it('a server that is a member of catalog_server can write no time that is infinite', async () => {
    const { rows } = await world.db.raw<{ rows: { column: string; is_bounded: boolean }[] }>(`
      select format('%s.%s', a.attrelid::regclass, a.attname) as column,
             exists (select from pg_constraint k where k.conrelid = a.attrelid
                      and pg_get_constraintdef(k.oid) = format('CHECK (isfinite(%s))', a.attname)) as is_bounded
        from pg_attribute a join pg_class c on c.oid = a.attrelid
       where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and a.atttypid = 'timestamptz'::regtype
         and has_column_privilege('catalog_server', c.oid, a.attnum, 'insert, update')`);
    assert.ok(rows.length > 15);
    assert.deepEqual(
      rows.filter(({ is_bounded: isBounded }) => !isBounded),
      [],
    );
    await assert.rejects(world.db.raw("update api_keys set revoked_at = '-infinity'"), { code: '23514' });
  });

  it('a server that is a member of catalog_server saves and rolls up usage, and removes old rows', async () => {
    const { db } = world;
    await eventually('the use is saved', async () => (await db('api_keys').whereNotNull('last_used_at')).length === 1);
    await eventually('the usage is rolled up', async () => {
      return (await db('developer_usage').where('start', '>', '2021-01-01Z')).length > 0;
    });
    for (const [table, [, time]] of Object.entries(OLD_ROWS)) {
      // The totals of 30 days have the epoch as their start.
      const isOld = db.raw(`${time} between '2019-01-01Z' and '2021-01-01Z'`);
      await eventually(`old rows of ${table} are gone`, async () => (await db(table).where(isOld)).length === 0);
    }
    const old = db('caller_changes').where({ developer_id: -1 });
    await eventually('old announcements are gone', async () => (await old).length === 0);
  });

  it('a server that is a member of catalog_server refuses a revoked key and logs no error', async () => {
    await revokeKey(world.db, prefix);
    await eventually('the key is refused', async () => (await statusOf('/api/v1/me')) === 401);
    const { code, stdout } = await server.stop();
    assert.equal(code, 0);
    assert.doesNotMatch(stdout, /could not| failed; | lost\b/);
  });
});
