import { Readable } from 'node:stream';
import type { Knex } from 'knex';
import { COLUMNS, type Title } from '../../../src/catalog/columns.js';
import { readCatalogCounts, verifyCounts, type Counts } from '../../../src/catalog/counts.js';
import { importCatalogue, type ImportOptions, type ImportResult } from '../../../src/catalog/import/index.js';
import { testWorld } from '../world.js';

/** A row of titles, with every column that an import can change. */
export type StoredTitle = Omit<Title, 'created_at' | 'updated_at'>;

export const STORED_COLUMNS = COLUMNS.titles.map(({ name }) => name) as readonly (keyof StoredTitle)[];

/** A row as an import stores it, with the values of the table's own for what is not given. */
export function storedTitle(given: Partial<StoredTitle> & Pick<StoredTitle, 'svc_id' | 'title'>): StoredTitle {
  return { media_type: 'movie', has_bundles: false, available_in_library: false, ...given };
}

/** The result of an import: its counts, and its messages about rejected rows. */
export interface Outcome {
  readonly result: ImportResult;
  readonly rejected: readonly string[];
}

/** A catalogue to import into. */
export interface TestCatalogue {
  readonly db: Knex;
  import(content: string | Buffer | Readable, options?: Partial<ImportOptions>): Promise<Outcome>;
  /** Runs a query. @returns its rows */
  query(sql: string): Promise<unknown[]>;
  /** All titles in the order of the feed. */
  titles(): Promise<StoredTitle[]>;
  /** All titles with their stamps, which show whether anything was written. */
  feed(): Promise<unknown>;
  /** The kept counts. @throws Error when they differ from a recount */
  counts(): Promise<Counts>;
}

/** Opens an empty catalogue for a suite, or with `each` for each test, and closes it afterwards. */
export function testCatalogue({ each = false } = {}): TestCatalogue {
  const world = testWorld({ each });
  return {
    get db() {
      return world.db;
    },
    async import(content, options = {}) {
      const rejected: string[] = [];
      const source = content instanceof Readable ? content : Readable.from([Buffer.from(content)]);
      const result = await importCatalogue(world.db, source, {
        kind: 'titles',
        format: 'csv',
        onRejected: (line, reason, found) => rejected.push(`line ${line}: ${reason}: ${found}`),
        ...options,
      });
      return { result, rejected };
    },
    query: async (sql) => (await world.db.raw<{ rows: unknown[] }>(sql)).rows,
    titles: () => world.db('titles').select<StoredTitle[]>(STORED_COLUMNS).orderBy('updated_at'),
    feed: () => world.db('titles').select().orderBy('svc_id'),
    async counts() {
      const { mismatches } = await verifyCounts(world.db);
      if (mismatches.length > 0) throw new Error(`wrong counts: ${JSON.stringify(mismatches)}`);
      return readCatalogCounts(world.db);
    },
  };
}

/** The counts of an import, 0 unless given. */
export function counts(some: Partial<ImportResult>): ImportResult {
  return { rows: 0, created: 0, updated: 0, unchanged: 0, skipped: 0, rejected: 0, ...some };
}
