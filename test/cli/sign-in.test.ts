import assert from 'node:assert/strict';
import { findDeveloperOf } from '../../src/accounts/identities.js';
import { findSession, startSession } from '../../src/accounts/sessions.js';
import { spendSignInLink } from '../../src/accounts/sign-in-links.js';
import { runCommand } from '../support/programs/command.js';
import { testWorld } from '../support/world.js';

describe('the commands for sign-in', () => {
  const world = testWorld();
  let id: number;

  before(async () => (id = await world.newDeveloper()));

  function run(args: string, environment: Record<string, string> = {}): ReturnType<typeof runCommand> {
    return runCommand(['developers', ...args.split(' ')], { DATABASE_URL: world.url, ...environment });
  }

  it('the command prints a sign-in link under the public URL', async () => {
    const { code, stdout } = await run(`sign-in-link ${id}`, { PUBLIC_URL: 'https://catalog.example/' });
    assert.equal(code, 0);
    const token = /^ {2}https:\/\/catalog\.example\/sign-in\/link\/([0-9a-f]{64})$/m.exec(stdout)?.[1];
    assert.equal(await spendSignInLink(world.db, token), id);
  });

  it('the command prints a sign-in link as JSON, for this machine if there is no public URL', async () => {
    const { stdout } = await run(`sign-in-link ${id} --json`, { HOST: '0.0.0.0', PORT: '9000' });
    const { url, ...rest } = JSON.parse(stdout) as { url: string };
    assert.match(url, /^http:\/\/127\.0\.0\.1:9000\/sign-in\/link\/[0-9a-f]{64}$/);
    assert.deepEqual(rest, { developer_id: id, expires_in_seconds: 600 });
  });

  it('the command for a sign-in link names what is missing', async () => {
    for (const [args, environment, message] of [
      ['sign-in-link 999', {}, 'There is no developer 999. "catalog developers list" shows them all.'],
      [`sign-in-link ${id}`, { PORT: '0' }, 'Set PUBLIC_URL: with PORT 0 the server chooses its own port.'],
    ] as const) {
      const { code, stdout, stderr } = await run(args, environment);
      assert.deepEqual([code, stdout, stderr], [1, '', `catalog: ${message}\n`]);
    }
  });

  it('a command links an identity to a developer', async () => {
    const { code, stdout } = await run(`link ${id} --issuer https://id.example --subject abc`);
    assert.equal(code, 0);
    assert.equal(stdout, `Linked developer ${id}: this identity can now sign in as that developer.\n`);
    assert.equal(await findDeveloperOf(world.db, { issuer: 'https://id.example', subject: 'abc' }), id);
    const { stdout: json } = await run(`link ${id} --issuer https://id.example --subject abc --json`);
    assert.deepEqual(JSON.parse(json), { developer_id: id, issuer: 'https://id.example', subject: 'abc' });
    assert.equal((await run(`link ${id}`)).code, 2);
  });

  it('commands list the identities of a developer and unlink one', async () => {
    const identity = '--issuer https://id.example --subject list';
    const own = await world.newDeveloper();
    await run(`link ${own} ${identity}`);
    const { stdout } = await run(`identities ${own}`);
    assert.match(stdout, /^issuer +subject +linked\nhttps:\/\/id\.example +list +\d{4}-\d\d-\d\dT[\d:]+Z\n$/);
    const { identities } = JSON.parse((await run(`identities ${own} --json`)).stdout) as { identities: object[] };
    assert.deepEqual(identities.map(Object.keys), [['issuer', 'subject', 'linked_at']]);
    await startSession(world.db, { developerId: own, userAgent: '', replaced: undefined });
    assert.equal(
      (await run(`unlink ${own} ${identity}`)).stdout,
      `Unlinked the identity and ended 1 session of developer ${own}.\n`,
    );
    const { code, stderr } = await run(`unlink ${own} ${identity}`);
    assert.deepEqual(
      [code, stderr],
      [1, `catalog: Developer ${own} has no such identity. "catalog developers identities ${own}" lists them.\n`],
    );
    await run(`link ${own} ${identity}`);
    assert.deepEqual(JSON.parse((await run(`unlink ${own} ${identity} --json`)).stdout), {
      developer_id: own,
      issuer: 'https://id.example',
      subject: 'list',
      sessions_ended: 0,
    });
  });

  it('a command ends all sessions of a developer', async () => {
    const details = { developerId: id, userAgent: '', replaced: undefined };
    const token = await startSession(world.db, details);
    assert.equal((await run(`sign-out ${id}`)).stdout, `Ended 1 session of developer ${id}.\n`);
    assert.equal(await findSession(world.db, token), undefined);
    assert.deepEqual(JSON.parse((await run(`sign-out ${id} --json`)).stdout), { developer_id: id, sessions_ended: 0 });
    assert.equal((await run('sign-out 999')).code, 1);
  });
});
