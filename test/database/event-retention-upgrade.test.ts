import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { spendProviderSignIn } from '../../src/accounts/identities.js';
import { generateToken } from '../../src/accounts/tokens.js';
import { createDeveloper } from '../../src/developers/developers.js';
import { removeOldEvents } from '../../src/events/events.js';
import { migrate } from '../../src/platform/postgres/migrations.js';
import { openDatabase } from '../../src/platform/postgres/database.js';
import { createDatabaseBefore } from '../support/postgres/earlier-schema.js';
import type { TestDatabase } from '../support/postgres.js';

const MIGRATION = '010_event_retention.sql';

/** Names are common to all databases of the server. */
const [SERVER, READER] = ['retention_server', 'retention_reader'];

describe('the migrations from the tenth on', () => {
  let database: TestDatabase;
  let db: Knex;

  before(async () => {
    database = await createDatabaseBefore(MIGRATION);
    db = openDatabase({
      address: database.url,
      applicationName: 'test',
      // Migrating takes one for its lock.
      poolSize: 2,
      acquireTimeoutMs: 10_000,
      statementTimeoutMs: 0,
    });
  });

  after(async () => {
    await db.raw(`drop owned by ${SERVER}, ${READER}; drop role ${SERVER}, ${READER}`);
    await db.destroy();
    await database.drop();
  });

  it('the role of a server that is there may remove old events, see announcements and spend sign-ins after the migrations, and nobody else', async () => {
    await db.raw(
      `create role ${SERVER}; grant select on api_keys to ${SERVER}; grant select, insert on events to ${SERVER};
       grant insert on sign_ups to ${SERVER}; grant select on developers to ${SERVER}`,
    );
    await db.raw(`create role ${READER}; grant select on events to ${READER}`);
    await db('events').insert({ at: '2020-01-01Z', developer_id: 1, kind: 'registered', actor: 'operator' });
    assert.equal((await migrate(db))[0], MIGRATION);
    await db.transaction(async (transaction) => {
      await transaction.raw(`set local role ${SERVER}`);
      assert.equal(await removeOldEvents(transaction), 1);
      assert.deepEqual(await transaction('caller_changes'), []);
      assert.equal(await spendProviderSignIn(transaction, generateToken().token), true);
      await createDeveloper(transaction, { projectName: 'P', attributionRequired: false });
    });
    for (const act of [
      removeOldEvents,
      async (reader: Knex) => reader('caller_changes'),
      (reader: Knex) => spendProviderSignIn(reader, generateToken().token),
      (reader: Knex) => createDeveloper(reader, { projectName: 'P', attributionRequired: false }),
    ]) {
      await assert.rejects(
        db.transaction(async (transaction) => {
          await transaction.raw(`set local role ${READER}`);
          await act(transaction);
        }),
        { code: '42501' },
      );
    }
  });
});
