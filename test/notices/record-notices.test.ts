import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { pino } from 'pino';
import type { QuotaReader } from '../../src/admission/charge/limiter.js';
import { recordComponentNotices } from '../../src/notices/record-notices.js';
import type { DependencyState } from '../../src/platform/telemetry/health.js';
import { Notices } from '../../src/service/notices.js';
import { eventually } from '../support/eventually.js';
import { testWorld } from '../support/world.js';

describe('the recording of notices', () => {
  const world = testWorld();

  it('an outage that several servers see is one loss and one return, however short it is and whoever records it first', async () => {
    const component = 'replica';
    /** Records the changes of three servers, which see each one after another. @returns the types that are stored */
    const recordAll = async (
      begin: string,
      changes: readonly (readonly [DependencyState, number])[],
      order: number[],
    ) => {
      const start = Date.parse(begin);
      for (const i of order) {
        const own = changes.map(([state, seconds]) => {
          return {
            component,
            state,
            at: new Date(start + seconds * 1000 + i * 100).toISOString(),
            server: `s${i}`,
          } as const;
        });
        await recordComponentNotices(world.db, own);
      }
      const rows = await world
        .db('notices')
        .where({ subject: `component ${component}` })
        .andWhere('occurred_at', '>=', begin)
        .orderBy('occurred_at')
        .select<{ type: string }[]>('type');
      return rows.map(({ type }) => type.replace('component.', '')).join(' ');
    };
    let day = 10;
    for (const order of [
      [0, 1, 2],
      [2, 1, 0],
      [1, 2, 0],
    ]) {
      for (const seconds of [0.6, 3, 60]) {
        const begin = `2026-01-${day++}T00:00:00.000Z`;
        const outage = [
          ['lost', 0],
          ['up', seconds],
        ] as const;
        assert.equal(await recordAll(begin, outage, order), 'lost back', `${seconds} s, ${String(order)}`);
      }
      const flap = [
        ['lost', 0],
        ['up', 10],
        ['lost', 20],
      ] as const;
      assert.equal(await recordAll(`2026-01-${day++}T00:00:00.000Z`, flap, order), 'lost back lost');
    }
  });

  it('the quotas of many developers are read twenty at a time, so that requests are served in between', async () => {
    await world
      .db('plans')
      .insert({ id: 'tiny', name: 'Tiny', requests_per_minute: 1, requests_per_day: 1, commercial_use: false });
    for (let i = 0; i < 45; i += 1) await world.newKey({ planId: 'tiny' });
    await world.db.raw(
      `insert into api_key_usage (key_id, hour, served, refused, failed)
       select id, date_trunc('hour', now(), 'UTC'), 1, 0, 0 from api_keys where plan_id = 'tiny'`,
    );
    let reading = 0;
    let most = 0;
    const read = new Set<number>();
    const quotas: QuotaReader = {
      async read({ developerId }) {
        most = Math.max(most, (reading += 1));
        await setImmediate();
        reading -= 1;
        read.add(developerId);
        return { quotas: [], countedIn: 'process' };
      },
    };
    const notices = new Notices({ url: 'http://127.0.0.1:1/', secret: Buffer.alloc(24) }, pino({ level: 'silent' }));
    const work = notices.start(world.db, quotas, 5);
    await eventually('all quotas are read', () => read.size === 45);
    await work.stop();
    assert.equal(most, 20);
  });
});
