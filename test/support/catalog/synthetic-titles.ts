import pg from 'pg';

/** Rows of one statement: its transition tables stay in memory. */
const BATCH_ROWS = 50_000;

/** `hashint8` scatters the bits of the number, which choose the words and the flags. */
const INSERT = `
  insert into titles (svc_id, media_type, title, has_bundles, available_in_library)
  select 'synthetic-1-' || lpad(number::text, 9, '0'),
         case when bits >> 12 & 7 < 5 then 'movie' else 'series' end,
         (array['Amber', 'Broken', 'Crimson', 'Distant', 'Empty', 'Frozen', 'Golden', 'Hidden',
                'Iron', 'Last', 'Little', 'Midnight', 'Quiet', 'Silver', 'The', 'Wild'])[1 + (bits & 15)] || ' ' ||
           (array['Bridge', 'Café', 'City', 'Garden', 'Harbour', 'House', 'Island', 'Letter',
                  'Mirror', 'Orchard', 'Railway', 'River', 'Road', 'Song', 'Summer', 'Winter'])[1 + (bits >> 4 & 15)] ||
           (array['', '', '', '', '', ' Again', ' Days', ' Nights', ' Stories', ' in Blue',
                  ' in May', ' of Dust', ' of Glass', ' of Lyon', ' of Salt', ' Returns'])[1 + (bits >> 8 & 15)],
         bits >> 15 & 7 = 0,
         bits >> 18 & 7 < 5
    from (select number, hashint8(number) as bits from generate_series($1::bigint, $2::bigint) number) numbers
   order by number`;

/**
 * Fills an empty catalogue with titles. Their ids are `synthetic-1-000000000` and so on, in the order of the feed. A
 * larger number begins with the same titles.
 *
 * @param url - of a migrated database
 */
export async function createSyntheticTitles(url: string, titles: number): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (let first = 0; first < titles; first += BATCH_ROWS) {
      await client.query(INSERT, [first, Math.min(first + BATCH_ROWS, titles) - 1]);
    }
  } finally {
    await client.end();
  }
}

/** @returns the id of a synthetic title @param place - from 0, in the order of the feed */
export function syntheticId(place: number): string {
  return `synthetic-1-${String(place).padStart(9, '0')}`;
}
