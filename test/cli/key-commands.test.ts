import assert from 'node:assert/strict';
import { callerLoader } from '../../src/admission/callers.js';
import { createKey, type CreatedKey } from '../../src/keys/keys.js';
import { runWithoutRedis } from '../support/programs/command.js';
import { forgeKey } from '../support/keys/forged-key.js';
import { hashOf } from '../support/keys/key-hash.js';
import type { Outcome } from '../support/program.js';
import { testWorld } from '../support/world.js';

describe('the commands for keys', () => {
  const world = testWorld();
  let developerId: number;

  before(async () => (developerId = await world.newDeveloper('P')));

  function catalog(args: readonly string[], input?: string): Promise<Outcome> {
    return runWithoutRedis(args, world.url, input);
  }

  async function json(...args: string[]): Promise<Record<string, unknown>> {
    const { code, stdout, stderr } = await catalog([...args, '--json']);
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    return JSON.parse(stdout) as Record<string, unknown>;
  }

  function create(...args: string[]): Promise<Record<string, unknown>> {
    return json('keys', 'create', '--developer', String(developerId), '--plan', 'free', ...args);
  }

  function newKey(): Promise<CreatedKey> {
    return createKey(world.db, { developerId, planId: 'free', label: 'staging' });
  }

  async function isActive(key: string): Promise<boolean> {
    return (await callerLoader(world.db, 1)(hashOf(key))) !== undefined;
  }

  it('a command creates a key that expires after a time or at a time, and prints it once', async () => {
    const { created_at, expires_at } = await create('--expires', '90d');
    assert.equal(Date.parse(String(expires_at)) - Date.parse(String(created_at)), 90 * 86_400_000);
    assert.equal((await create('--expires', '2100-02-28')).expires_at, '2100-02-28T00:00:00.000000Z');
    assert.equal((await create('--expires', '2100-01-31T18:30Z')).expires_at, '2100-01-31T18:30:00.000000Z');
    assert.equal((await create()).expires_at, null);
    const { stdout } = await catalog(
      ['keys', 'create', '--developer', String(developerId), '--plan', 'free'].concat('--expires', '2100-02-28'),
    );
    assert.match(stdout, /^Created svc_\w{8} on plan free, until 2100-02-28T00:00:00Z\. The key is shown this once/);
  });

  it('a malformed or past expiry ends the command with code 2 and shows the accepted forms', async () => {
    const create = ['keys', 'create', '--developer', '1', '--plan', 'free', '--expires'];
    for (const when of ['90', '0d', '99999d', '2020-01-01', '2100-02-30', '2100-13-01', '2100-01-31T18:30', '']) {
      const { code, stdout, stderr } = await catalog([...create, when]);
      assert.deepEqual({ code, stdout }, { code: 2, stdout: '' }, when);
      assert.match(stderr, /Use a (?:duration such as 90d|number with s, m, h or d)/);
    }
  });

  it('a command rolls a key and prints its successor and the end of the overlap', async () => {
    const old = await newKey();
    const { code, stdout, stderr } = await catalog(['keys', 'roll', old.prefix, '--overlap', '24h']);
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    const [, until = '', successor = '', key = ''] =
      /^Rolled svc_\w{8}: it is accepted until (\S+)\. Its successor (svc_\w{8}) is shown this once:\n {2}(\S+)\n$/.exec(
        stdout,
      ) ?? assert.fail(stdout);
    const left = Date.parse(until) - Date.now();
    assert.ok(left > 86_390_000 && left <= 86_400_000, until);
    assert.deepEqual([await isActive(old.key), await isActive(key)], [true, true]);
    assert.ok(key.startsWith(`${successor}_`));
    const table = (await catalog(['keys', 'list', '--developer', String(developerId)])).stdout;
    assert.match(table, new RegExp(`^${old.prefix} .* rolled, replaced by ${successor}$`, 'm'));
    assert.match(table, new RegExp(`^${successor} .* staging .* active$`, 'm'));
  });

  it('a key that is rolled with the overlap "now" ends at once', async () => {
    const old = await newKey();
    const { stdout } = await catalog(['keys', 'roll', old.prefix, '--overlap', 'now']);
    assert.match(stdout, /: it is refused within moments\. Its successor /);
    assert.equal(await isActive(old.key), false);
    const second = await newKey();
    const document = await json('keys', 'roll', second.prefix, '--overlap', '0s');
    assert.equal(await isActive(String(document.key)), true);
    assert.deepEqual(
      [document.state, document.label, (document.predecessor as Record<string, unknown>).state],
      ['active', 'staging', 'expired'],
    );
    const again = await catalog(['keys', 'roll', old.prefix, '--overlap', 'now']);
    assert.deepEqual([again.code, again.stdout], [1, '']);
    assert.match(again.stderr, /^catalog: Key svc_\w{8} has expired and cannot be rolled\./);
  });

  it('rolling a key requires an overlap with a unit', async () => {
    const missing = await catalog(['keys', 'roll', 'svc_aaaaaaaa']);
    assert.equal(missing.code, 2);
    assert.match(missing.stderr, /required option '--overlap <duration>'/);
    const wrong = await catalog(['keys', 'roll', 'svc_aaaaaaaa', '--overlap', '24']);
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /Use a number with s, m, h or d, such as 24h/);
  });

  for (const command of [['revoke'], ['roll', '--overlap', 'now'], ['set-plan', '--plan', 'pro']]) {
    it(`"keys ${command.join(' ')}" refuses a whole key as an argument, without repeating it`, async () => {
      const { key, prefix } = await newKey();
      const [name = '', ...options] = command;
      const { code, stdout, stderr } = await catalog(['keys', name, key, ...options]);
      assert.deepEqual({ code, stdout }, { code: 2, stdout: '' });
      assert.match(stderr, new RegExp(`use the prefix alone, ${prefix}: every user of this machine can read`));
      assert.ok(!stderr.includes(key.slice(prefix.length + 1)), 'the key was repeated');
      assert.equal(await isActive(key), true);
      const mistyped = await catalog(['keys', name, `${prefix}x`, ...options]);
      assert.equal(mistyped.code, 2);
      assert.match(mistyped.stderr, /the prefix of a key is svc_ and 8 letters and digits/);
    });
  }

  it('a command revokes the key whose prefix or whole text is on standard input', async () => {
    const [whole, named] = [await newKey(), await newKey()];
    for (const [{ key, prefix }, input] of [
      [whole, `  ${whole.key}\r\nmore\n`],
      [named, named.prefix],
    ] as const) {
      const { code, stdout, stderr } = await catalog(['keys', 'revoke', '-'], input);
      assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
      assert.equal(stdout, `Revoked ${prefix}. It is refused within moments, permanently.\n`);
      assert.equal(await isActive(key), false);
    }
  });

  it('a truncated or forged key on standard input revokes nothing', async () => {
    const { key, prefix } = await newKey();
    for (const input of [key.slice(0, -1), '', 'x'.repeat(10_000)]) {
      const { code, stderr } = await catalog(['keys', 'revoke', '-'], input);
      assert.equal(code, 2);
      assert.match(stderr, /neither the prefix of a key nor a whole key/);
    }
    const forged = await catalog(['keys', 'revoke', '-'], forgeKey(prefix));
    assert.equal(forged.code, 1);
    assert.match(forged.stderr, /^catalog: This is not a key of this service\. Check that you copied all of it\.\n$/);
    assert.equal(await isActive(key), true);
  });

  it('a command sets the plan of keys that a developer creates', async () => {
    const id = String(developerId);
    assert.equal(
      (await catalog(['developers', 'set-plan', id, '--plan', 'pro'])).stdout,
      `New keys of developer ${id} are on plan pro.\n`,
    );
    const { developer } = await json('developers', 'set-plan', id, '--plan', 'scale');
    assert.equal((developer as Record<string, unknown>).plan_id, 'scale');
    assert.match((await catalog(['developers', 'list'])).stdout, /^1 +P +scale /m);
    const missing = await catalog(['developers', 'set-plan', id, '--plan', 'gone']);
    assert.deepEqual([missing.code, missing.stdout], [1, '']);
    assert.match(missing.stderr, /^catalog: There is no plan "gone"\..*plans list/);
  });

  it('a command lists the events of one developer or of all, newest first', async () => {
    const id = await world.newDeveloper();
    const { prefix } = await createKey(world.db, { developerId: id, planId: 'free' });
    await catalog(['keys', 'revoke', prefix]);
    const { stdout } = await catalog(['events', '--developer', String(id)]);
    assert.match(
      stdout,
      new RegExp(
        `^at +developer +event +key +by +details\n\\S+Z +${id} +revoked +${prefix} +operator +-\n` +
          `\\S+Z +${id} +created +${prefix} +operator +plan free\n\\S+Z +${id} +registered +- +operator +plan free\n$`,
      ),
    );
    const { events } = (await json('events', '--limit', '2')) as { events: Record<string, unknown>[] };
    assert.deepEqual(
      events.map(({ at, ...event }) => [typeof at, event]),
      ['revoked', 'created'].map((kind) => [
        'string',
        {
          developer_id: id,
          kind,
          actor: 'operator',
          key_prefix: prefix,
          details: kind === 'created' ? { plan: 'free' } : {},
        },
      ]),
    );
  });
});
