import assert from 'node:assert/strict';
import fc from 'fast-check';
import { nextPosition, positionAfterCopy } from '../../src/catalog/position.js';
import { asPosition, WINDOW } from '../../src/catalog/since.js';

const DAY = 86_400_000_000n;
const NOW = 1_795_218_005_123_456n;

/** No transaction is open for longer. */
const LONGEST_WRITE = 14n * DAY;

/** Times before `NOW`, near it and far from it, or a little after it. */
const time = fc
  .oneof(fc.bigInt({ min: -60_000_000n, max: 60_000_000n }), fc.bigInt({ min: 0n, max: 40n * DAY }))
  .map((age) => NOW - age);

/** A feed before a page was read, and the page. */
const reading = fc
  .record({
    newest: fc.oneof(time.map(asPosition), fc.constant(0n)),
    /** The database's clock, which may be wrong by hours; undefined while a writer is active. */
    safeTime: fc.option(
      fc.bigInt({ min: -DAY / 2n, max: DAY / 2n }).map((wrong) => NOW + wrong),
      { nil: undefined },
    ),
    since: time.filter((since) => since >= NOW - WINDOW),
    /** How far the page's last entry lies after the position that it was read from; undefined for an empty page. */
    lastAfter: fc.option(fc.bigInt({ min: 1n, max: 5n * DAY }), { nil: undefined }),
    hasMore: fc.boolean(),
  })
  .map(({ newest, safeTime, since, lastAfter, hasMore }) => {
    const start = since < newest ? since : newest;
    const last = lastAfter === undefined && since >= newest ? undefined : asPosition(start + 1n + (lastAfter ?? 1n));
    return { newest, safeTime, since, last, hasMore: hasMore && last !== undefined };
  });

describe('the position', () => {
  it('after a page lies before every entry that the page lacks and every later commit of active writers', () => {
    fc.assert(
      fc.property(reading, ({ newest, safeTime, since, last, hasMore }) => {
        const next = nextPosition({ since, last, hasMore, feed: { newest, safeTime }, now: NOW });
        if (hasMore) {
          assert.equal(next, last);
          return;
        }
        // Later commits are stamped after the page, and after a safe time.
        const shown = last ?? newest;
        const atWork = safeTime ?? NOW - LONGEST_WRITE;
        const earliest = (shown > atWork ? shown : atWork) + 1n;
        assert.ok(next < earliest || next === last, `${next} ${earliest}`);
      }),
      { numRuns: 5_000 },
    );
  });

  it('after a page stays valid for a mirror that polls every fifteen days while nobody writes', () => {
    fc.assert(
      fc.property(reading, ({ newest, since, last }) => {
        const feed = { newest, safeTime: NOW };
        const next = nextPosition({ since, last, hasMore: false, feed, now: NOW });
        assert.ok(next >= NOW - WINDOW / 2n, String(next));
        assert.ok(next === since || next === last || next % 10n !== 0n || next === newest, 'ends in 0');
      }),
      { numRuns: 5_000 },
    );
  });

  it('after an empty page is unchanged in a quiet feed, unless it is old', () => {
    const recent = fc.bigInt({ min: NOW - WINDOW / 2n, max: NOW });
    fc.assert(
      fc.property(recent, recent, (since, newest) => {
        fc.pre(since >= newest);
        const page = { since, last: undefined, hasMore: false, now: NOW };
        assert.equal(nextPosition({ ...page, feed: { newest, safeTime: NOW } }), since);
        const atWork = { newest, safeTime: undefined };
        assert.equal(nextPosition({ ...page, feed: atWork }), newest);
      }),
    );
  });

  it('after a copy lies before every entry that the copy lacks, and never ends in 0', () => {
    fc.assert(
      fc.property(
        fc.option(time.map(asPosition), { nil: undefined }),
        fc.option(time, { nil: undefined }),
        (newest, safeTime) => {
          const position = positionAfterCopy(newest, safeTime, NOW);
          assert.notEqual(position % 10n, 0n);
          assert.ok(position > NOW - WINDOW);
          if (safeTime !== undefined)
            assert.ok(position === newest || position <= safeTime || position < NOW - LONGEST_WRITE);
        },
      ),
    );
  });
});
