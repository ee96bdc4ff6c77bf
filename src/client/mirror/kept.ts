import type { PartialFile } from './copy-source.js';
import type { MirrorStore } from './store.js';

/**
 * Opens what earlier runs have downloaded of a file, so that this one continues there. The pieces are in a table of the
 * mirror, those of one file at a time.
 *
 * @param source - which file it is
 */
export async function openKept(store: MirrorStore, source: string): Promise<PartialFile> {
  await store.query(`delete from ${store.schema}.kept where source <> $1`, [source]);
  return {
    async *read() {
      for (let place = '-1'; ;) {
        const { rows } = await store.query<{ place: string; content: Buffer }>(
          `select place, content from ${store.schema}.kept where place > $1 order by place limit 1`,
          [place],
        );
        if (rows[0] === undefined) return;
        ({ place } = rows[0]);
        yield rows[0].content;
      }
    },
    async add(end, piece) {
      await store.query(`insert into ${store.schema}.kept (source, place, content) values ($1, $2, $3)`, [
        source,
        end,
        piece,
      ]);
    },
  };
}

/** Drops everything that is kept. */
export async function forget(store: MirrorStore): Promise<void> {
  await store.query(`truncate ${store.schema}.kept`);
}
