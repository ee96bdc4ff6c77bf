import type { Fault } from '../fault.js';

/** Faults in what follows a feed. */
export const FOLLOW_FAULTS: readonly Fault[] = [
  {
    name: 'state-without-sync',
    promise: 'A position is on the disk before its file is renamed.',
    edits: [
      {
        file: 'src/platform/files/write-file-atomic.ts',
        from: `    await handle.sync();
    await handle.close();
    await rename`,
        to: `    await handle.close();
    await rename`,
      },
    ],
    suites: ['test/follow/durability.test.ts'],
  },
  {
    name: 'position-before-lines',
    promise: 'A position is saved only after its entries are written.',
    edits: [
      {
        file: 'src/follower/follow.ts',
        from: `      if (page.data.length > 0) await deliver(page, since);
      const next = page.meta.next_since;
      await save(next);`,
        to: `      const next = page.meta.next_since;
      await save(next);
      if (page.data.length > 0) await deliver(page, since);`,
      },
    ],
    suites: ['test/follow/failures.test.ts', 'test/follow/program.test.ts', 'test/follow/durability.test.ts'],
  },
  {
    name: 'circles-followed',
    promise: 'A service that does not move on is not followed for ever.',
    edits: [{ file: 'src/follower/follow.ts', from: 'meta.next_since <= since', to: 'meta.next_since < since - 1e9' }],
    suites: ['test/follow/failures.test.ts'],
  },
  {
    name: 'redirect-followed',
    promise: 'A key never follows a redirect to another host.',
    edits: [{ file: 'src/follower/client.ts', from: "redirect: 'manual'", to: "redirect: 'follow'" }],
    suites: ['test/follow/redirects.test.ts'],
  },
  {
    name: 'retry-after-ignored',
    promise: 'A follower waits as long as Retry-After says.',
    edits: [
      {
        file: 'src/follower/retry.ts',
        from: 'const asked = Math.min(askedMs, LONGEST_ASKED_MS);',
        to: 'const asked = Math.min(askedMs, 0);',
      },
    ],
    suites: ['test/follow/retry.test.ts'],
  },
];
