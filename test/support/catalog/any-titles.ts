import fc from 'fast-check';
import type { StoredTitle } from './importing.js';

/** Text that PostgreSQL stores and that is not blank, with every character that is special in some format. */
const text = fc
  .oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 40 }),
    fc.string({ unit: fc.constantFrom(...Array.from('",\t\n\r\\N.\'{ é😀\ufeff\x01\x02')) }),
    fc.string({ unit: 'binary', minLength: 1000, maxLength: 1000 }),
  )
  .filter((value) => value.trim() !== '' && !/[\0\p{Cs}]/u.test(value));

const id = fc.stringMatching(/^[A-Za-z0-9_-]{1,50}$/);

/** Titles with unique ids. */
export const anyTitles = fc.uniqueArray(
  fc.record<StoredTitle>({
    svc_id: id,
    media_type: fc.constantFrom('movie', 'series'),
    title: text,
    has_bundles: fc.boolean(),
    available_in_library: fc.boolean(),
  }),
  { selector: ({ svc_id }) => svc_id, maxLength: 20 },
);
