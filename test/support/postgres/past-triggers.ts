import type { Knex } from 'knex';

/**
 * Changes a table without its triggers, even ones that session_replication_role does not skip, in a transaction.
 *
 * @param act - gets the transaction
 */
export async function pastTriggers<T>(db: Knex, table: string, act: (transaction: Knex) => Promise<T>): Promise<T> {
  const result = await db.transaction(async (transaction) => {
    const { rows } = await transaction.raw<{ rows: [{ actions: string }] }>(
      `select string_agg(format('enable %s trigger %I', case tgenabled when 'A' then 'always' when 'R' then 'replica' end, tgname), ', ') as actions
         from pg_trigger where tgrelid = ?::regclass and not tgisinternal`,
      [table],
    );
    await transaction.raw('alter table ?? disable trigger user', [table]);
    const acted = await act(transaction);
    await transaction.raw(`alter table ?? ${rows[0].actions}`, [table]);
    return acted;
  });
  // On its own: a writer may have the row of the counts, and wait for the table.
  await db('catalog_counts').update({ newest_stamp: null });
  return result;
}
