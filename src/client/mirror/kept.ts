import type { MirrorStore } from './store.js';

/**
 * Part of a load that is not complete, so that the next run continues it: pieces of the file of a copy, or pages of the
 * feed. They are in a table of the mirror, one source at a time.
 */
export interface Kept {
  /** Which file or feed it is. */
  readonly source: string;
  /** Where it continues: a number of bytes, or a position. */
  readonly end: number;
}

/** @returns undefined for nothing */
export async function readKept(store: MirrorStore): Promise<Kept | undefined> {
  const { rows } = await store.query<{ source: string; end: number }>(
    `select source, place::float8 as "end" from ${store.schema}.kept order by place desc limit 1`,
  );
  return rows[0];
}

/** Keeps a piece of a source. @param end - the place after the piece */
export async function keep(store: MirrorStore, { source, end }: Kept, piece: Buffer | string): Promise<void> {
  await store.query(
    `insert into ${store.schema}.kept (source, place, content) values ($1, $2, $3)
     on conflict (place) do nothing`,
    [source, end.toFixed(6), Buffer.from(piece)],
  );
}

/** Reads the pieces in their order. */
export async function* readPieces(store: MirrorStore): AsyncGenerator<Buffer> {
  for (let place = '-1'; ;) {
    const { rows } = await store.query<{ place: string; content: Buffer }>(
      `select place, content from ${store.schema}.kept where place > $1 order by place limit 1`,
      [place],
    );
    if (rows[0] === undefined) return;
    ({ place } = rows[0]);
    yield rows[0].content;
  }
}

/** Drops everything that is kept. */
export async function forget(store: MirrorStore): Promise<void> {
  await store.query(`truncate ${store.schema}.kept`);
}
