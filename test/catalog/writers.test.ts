import assert from 'node:assert/strict';
import { readWriters } from '../../src/catalog/writers.js';
import { openTestDatabase } from '../support/database.js';
import { insertTitle, writersWait } from '../support/titles.js';
import { testWorld } from '../support/world.js';

describe('the writers of a catalogue', () => {
  const world = testWorld();

  it('a writer is active while it holds the lock of this database, and others wait; a reader that shares the lock is none', async () => {
    const { db } = world;
    const elsewhere = await openTestDatabase();
    world.defer(() => elsewhere.close());
    const foreign = await elsewhere.db.transaction();
    await insertTitle(foreign, 'elsewhere');
    assert.deepEqual(await readWriters(db), { isActive: false, waiting: 0 });
    await foreign.rollback();

    const reader = await db.transaction();
    await reader.raw('select pg_advisory_xact_lock_shared(1717921124, 1)');
    assert.deepEqual(await readWriters(db), { isActive: false, waiting: 0 });
    const writer = await db.transaction();
    const writing = insertTitle(writer, 'a');
    await writersWait(db);
    assert.deepEqual(await readWriters(db), { isActive: false, waiting: 1 });
    await reader.rollback();
    await writing;
    assert.deepEqual(await readWriters(db), { isActive: true, waiting: 0 });
    await writer.rollback();
  });
});
