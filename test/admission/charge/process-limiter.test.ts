import assert from 'node:assert/strict';
import { ProcessLimiter } from '../../../src/admission/charge/process-limiter.js';
import type { Plan } from '../../../src/limits/plans.js';
import type { QuotaResult } from '../../../src/admission/charge/limiter.js';

function plan(requestsPerMinute: number, requestsPerDay: number, id = 'p'): Plan {
  return { id, name: 'P', requestsPerMinute, requestsPerDay, commercialUse: false };
}

/** A decision as far as it does not depend on the time of day. */
function summary({ quotas, violated }: QuotaResult): { remaining: number[]; violated: string[] } {
  return { remaining: quotas.map(({ remaining }) => remaining), violated: violated.map(({ name }) => name) };
}

describe('the limiter of a plan', () => {
  it('tells where a caller stands with each quota', async () => {
    const decision = await new ProcessLimiter().charge({ developerId: 1, plan: plan(60, 10_000) });
    assert.deepEqual(decision, {
      quotas: [
        { name: 'minute', limit: 60, windowSeconds: 60, remaining: 59, resetSeconds: 60 },
        { name: 'day', limit: 10_000, windowSeconds: 86_400, remaining: 9_999, resetSeconds: 86_400 },
      ],
      violated: [],
    });
  });

  it('allows exactly as many of many concurrent requests as the plan says', async () => {
    for (const [limits, refusedBy] of [
      [plan(100, 500), 'minute'],
      [plan(500, 100), 'day'],
    ] as const) {
      const limiter = new ProcessLimiter();
      const decisions = await Promise.all(
        Array.from({ length: 1_000 }, () => limiter.charge({ developerId: 1, plan: limits })),
      );
      const served = decisions.filter(({ violated }) => violated.length === 0);
      assert.equal(served.length, 100);
      // Each position once, counting down.
      const position = refusedBy === 'minute' ? 0 : 1;
      assert.deepEqual(
        served.map(({ quotas }) => quotas[position]?.remaining),
        Array.from({ length: 100 }, (_, i) => 99 - i),
      );
      for (const decision of decisions.filter(({ violated }) => violated.length > 0)) {
        // The other quota has as much left as was left after the last one that was served, and is not blamed.
        const left = position === 0 ? [0, 400] : [400, 0];
        assert.deepEqual(summary(decision), { remaining: left, violated: [refusedBy] });
      }
    }
  });

  it('charges nothing for a refused request', async () => {
    const limiter = new ProcessLimiter();
    for (let i = 0; i < 3; i += 1) await limiter.charge({ developerId: 1, plan: plan(3, 100) });
    for (let i = 0; i < 50; i += 1) {
      assert.deepEqual(summary(await limiter.charge({ developerId: 1, plan: plan(3, 100) })), {
        remaining: [0, 97],
        violated: ['minute'],
      });
    }
    // With room in the minute the day shows what was charged: three, and this one.
    assert.deepEqual(summary(await limiter.charge({ developerId: 1, plan: plan(10, 100) })), {
      remaining: [6, 96],
      violated: [],
    });
  });

  it('charges nothing to the minute for a request that the day refuses', async () => {
    const limiter = new ProcessLimiter();
    for (let i = 0; i < 2; i += 1) await limiter.charge({ developerId: 1, plan: plan(10, 2) });
    for (let i = 0; i < 50; i += 1) {
      assert.deepEqual(summary(await limiter.charge({ developerId: 1, plan: plan(10, 2) })), {
        remaining: [8, 0],
        violated: ['day'],
      });
    }
    assert.deepEqual(summary(await limiter.charge({ developerId: 1, plan: plan(10, 5) })), {
      remaining: [7, 2],
      violated: [],
    });
  });

  it('names both quotas where both refuse', async () => {
    const limiter = new ProcessLimiter();
    await limiter.charge({ developerId: 1, plan: plan(1, 1) });
    const decision = await limiter.charge({ developerId: 1, plan: plan(1, 1) });
    assert.deepEqual(summary(decision), { remaining: [0, 0], violated: ['minute', 'day'] });
  });

  it('counts each developer, and each of a developer’s plans, alone', async () => {
    const limiter = new ProcessLimiter();
    const first = await limiter.charge({ developerId: 1, plan: plan(2, 10) });
    const other = await limiter.charge({ developerId: 2, plan: plan(2, 10) });
    const otherPlan = await limiter.charge({ developerId: 1, plan: plan(2, 10, 'q') });
    for (const decision of [first, other, otherPlan]) {
      assert.deepEqual(summary(decision), { remaining: [1, 9], violated: [] });
    }
    // Ids and names that look alike when strung together do not meet.
    await limiter.charge({ developerId: 11, plan: plan(2, 10, 'p') });
    assert.deepEqual(summary(await limiter.charge({ developerId: 1, plan: plan(2, 10) })), {
      remaining: [0, 8],
      violated: [],
    });
  });

  it('holds a changed plan from the next request on', async () => {
    const limiter = new ProcessLimiter();
    for (let i = 0; i < 5; i += 1) await limiter.charge({ developerId: 1, plan: plan(10, 100) });
    assert.deepEqual(summary(await limiter.charge({ developerId: 1, plan: plan(3, 100) })), {
      remaining: [0, 95],
      violated: ['minute'],
    });
    assert.deepEqual(summary(await limiter.charge({ developerId: 1, plan: plan(7, 100) })), {
      remaining: [1, 94],
      violated: [],
    });
    assert.deepEqual(summary(await limiter.charge({ developerId: 1, plan: plan(2_147_483_647, 2_147_483_647) })), {
      remaining: [2_147_483_640, 2_147_483_640],
      violated: [],
    });
  });
});
