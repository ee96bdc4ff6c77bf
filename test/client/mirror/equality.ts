import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { ENTRY_COLUMNS } from '../../../src/catalog/columns.js';

interface Row {
  readonly svc_id: string;
  readonly updated_at: string;
}

function readTitles(db: Knex, schema: string): Promise<Row[]> {
  return db.withSchema(schema).from<Row>('titles').select<Row[]>(ENTRY_COLUMNS).orderByRaw('svc_id collate "C"');
}

/** Requires that a mirror has exactly the titles of its source, by reading both with SQL. @returns their number */
export async function requireEqual(source: Knex, mirror: Knex, schema = 'catalog_mirror'): Promise<number> {
  const [titles, mirrored] = [await readTitles(source, 'public'), await readTitles(mirror, schema)];
  assert.equal(mirrored.length, titles.length);
  assert.deepEqual(mirrored, titles);
  return titles.length;
}

/**
 * Requires that a mirror equals its source at its position, by reading both with SQL. The source may be written
 * meanwhile: what was changed after the position is not compared, but every row of the mirror must be in the source.
 *
 * @returns the number of rows of the mirror; 0 if it has not begun
 */
export async function requireConsistent(source: Knex, mirror: Knex): Promise<number> {
  const { rows: found } = await mirror.raw<{ rows: [{ begun: boolean }] }>(
    "select to_regclass('catalog_mirror.state') is not null as begun",
  );
  if (!found[0].begun) return 0;
  // Before the source: what the mirror gets later is not there yet.
  const held = await mirror.transaction(
    async (transaction) => {
      const { rows } = await transaction.raw<{ rows: { position: string }[] }>(
        "select (timestamptz 'epoch' + position * interval '1 second') as position from catalog_mirror.state",
      );
      return { end: rows[0]?.position, titles: await readTitles(transaction, 'catalog_mirror') };
    },
    { isolationLevel: 'repeatable read' },
  );
  const { end } = held;
  if (end === undefined) {
    assert.deepEqual(held.titles, [], 'rows are visible before the first copy is complete');
    return 0;
  }
  const mirrored = new Map(held.titles.map((row) => [row.svc_id, row]));
  const titles = await readTitles(source, 'public');
  for (const row of titles) {
    const own = mirrored.get(row.svc_id);
    mirrored.delete(row.svc_id);
    if (row.updated_at <= end) assert.deepEqual(own, row);
    else if (own) assert.ok(own.updated_at <= end && own.updated_at < row.updated_at, row.svc_id);
  }
  assert.deepEqual([...mirrored.keys()], [], 'rows that the source does not have');
  return held.titles.length;
}
