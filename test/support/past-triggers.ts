import type { Knex } from 'knex';

/**
 * Does something past all triggers of a table, also those that session_replication_role does not skip, in a transaction.
 *
 * @param act - gets the transaction
 */
export function pastTriggers<T>(db: Knex, table: string, act: (transaction: Knex) => Promise<T>): Promise<T> {
  return db.transaction(async (transaction) => {
    const { rows } = await transaction.raw<{ rows: { name: string; always: boolean }[] }>(
      `select tgname as name, tgenabled = 'A' as always from pg_trigger where tgrelid = ?::regclass and not tgisinternal`,
      [table],
    );
    await transaction.raw('alter table ?? disable trigger user', [table]);
    const result = await act(transaction);
    for (const { name, always } of rows) {
      await transaction.raw(`alter table ?? enable ${always ? 'always ' : ''}trigger ??`, [table, name]);
    }
    return result;
  });
}
