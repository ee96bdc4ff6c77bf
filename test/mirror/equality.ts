import assert from 'node:assert/strict';
import type { Knex } from 'knex';

const FIELDS = ['svc_id', 'media_type', 'title', 'updated_at', 'has_bundles'] as const;

/** Requires that a mirror has exactly the titles of its source, by reading both with SQL. @returns their number */
export async function requireEqual(source: Knex, mirror: Knex, schema = 'catalog_mirror'): Promise<number> {
  const [titles, mirrored] = await Promise.all([
    source('titles')
      .select(...FIELDS)
      .orderByRaw('svc_id collate "C"'),
    mirror
      .withSchema(schema)
      .from('titles')
      .select(...FIELDS)
      .orderByRaw('svc_id collate "C"'),
  ]);
  assert.deepEqual(mirrored, titles);
  return titles.length;
}
