import { setTimeout as delay } from 'node:timers/promises';
import type { Knex } from 'knex';

/** Inserts and updates titles until it is stopped, and rolls some transactions back. */
export class TitleWriter {
  commits = 0;
  #isStopping = false;
  readonly #running: Promise<void>;

  /**
   * @param titles - how many titles of addTitles() there are
   * @param pauseMs - between two transactions
   */
  constructor(
    private readonly db: Knex,
    private readonly name: string,
    private readonly titles: number,
    private readonly pauseMs = 0,
  ) {
    this.#running = this.#run();
  }

  stop(): Promise<void> {
    this.#isStopping = true;
    return this.#running;
  }

  async #run(): Promise<void> {
    for (let turn = 0; !this.#isStopping; turn += 1) {
      const transaction = await this.db.transaction();
      const changed = `title-${String(1 + ((turn * 37) % this.titles)).padStart(4, '0')}`;
      await transaction('titles').insert({ svc_id: `${this.name}-${turn}`, media_type: 'series', title: 'New' });
      await transaction('titles')
        .where({ svc_id: changed })
        .update({ title: `${this.name} ${turn}`, has_bundles: transaction.raw('not has_bundles') });
      if (turn % 5 === 4) {
        await transaction.rollback();
      } else {
        await transaction.commit();
        this.commits += 1;
      }
      if (this.pauseMs > 0) await delay(this.pauseMs);
    }
  }
}
