import type { Fault } from '../fault.js';

/** Faults in when keys expire, in what rolls them, and in what is recorded of them. */
export const KEY_LIVES_FAULTS: readonly Fault[] = [
  {
    name: 'expiry-not-checked-in-database',
    promise: 'An expired key fails on the next request.',
    edits: [
      {
        file: 'src/admission/callers.ts',
        from: 'and (k.expires_at is null or k.expires_at > clock_timestamp())',
        to: '',
      },
    ],
    suites: ['test/keys/expiry.test.ts'],
  },
  {
    name: 'expiry-not-checked-in-cache',
    promise: 'An expired key fails on the next request, also where it is cached.',
    edits: [
      {
        file: 'src/admission/caller-cache.ts',
        from: 'caller.expiresAt > this.clock.now()',
        to: 'this.clock.now() > 0',
      },
    ],
    suites: ['test/keys/expiry.test.ts'],
  },
  {
    name: 'expiry-by-the-time-of-day',
    promise: 'A key works no longer where the clock of a server is set back.',
    edits: [
      {
        file: 'src/platform/time/steady-clock.ts',
        from: 'return monotonic + this.#gained;',
        to: 'return this.timeOfDay();',
      },
    ],
    suites: ['test/keys/expiry.test.ts'],
  },
  {
    name: 'expiry-counted-from-the-answer',
    promise: 'A cached key ends no later than in the database.',
    edits: [
      {
        file: 'src/admission/callers.ts',
        from: 'Infinity : sentAt + row.ms_left',
        to: 'Infinity : sentAt + row.ms_left + 300',
      },
    ],
    suites: ['test/keys/expiry.test.ts'],
  },
  {
    name: 'expiry-not-announced',
    promise: 'Servers hear of a changed expiry.',
    edits: [
      {
        file: 'db/migrations/007_key_lives.sql',
        from: 'new.plan_id, new.revoked_at, new.expires_at))\n  execute function public.announce',
        to: 'new.plan_id, new.revoked_at, old.expires_at))\n  execute function public.announce',
      },
    ],
    suites: ['test/keys/expiry.test.ts'],
  },
  {
    name: 'overlap-prolongs-a-key',
    promise: 'An overlap never prolongs a key.',
    edits: [
      {
        file: 'src/keys/roll-key.ts',
        from: "least(expires_at, now() + ? * interval '1 second')",
        to: "now() + ? * interval '1 second'",
      },
    ],
    suites: ['test/keys/keys.test.ts'],
  },
  {
    name: 'rolled-twice',
    promise: 'A key has one successor.',
    edits: [{ file: 'src/keys/roll-key.ts', from: 'key.clone().forUpdate()', to: 'key.clone()' }],
    suites: ['test/keys/keys.test.ts'],
  },
  {
    name: 'whole-key-as-argument',
    promise: 'A whole key is not taken from the command line, and not repeated.',
    edits: [
      {
        file: 'src/commands/developers/key-argument.ts',
        from: 'if (isKeyPrefix(argument)) return argument;',
        to: "if (argument.startsWith('svc_')) return argument.slice(0, 12);",
      },
    ],
    suites: ['test/cli/key-commands.test.ts'],
  },
  {
    name: 'actor-outlives-its-transaction',
    promise: 'An event names who has made the change.',
    edits: [
      {
        file: 'src/events/events.ts',
        from: "set_config('catalog.actor', ?, true)",
        to: "set_config('catalog.actor', ?, false)",
      },
    ],
    suites: ['test/events/events.test.ts'],
  },
  {
    name: 'use-of-a-key-is-an-event',
    promise: 'An event is written for each change, and not when a key is used.',
    edits: [
      {
        file: 'db/migrations/007_key_lives.sql',
        from: 'if new.revoked_at is not null and old.revoked_at is null then',
        to: 'if new.revoked_at is not null then',
      },
      {
        file: 'db/migrations/007_key_lives.sql',
        from: `  when ((old.plan_id, old.revoked_at, old.expires_at, old.successor_id)
        is distinct from (new.plan_id, new.revoked_at, new.expires_at, new.successor_id))
`,
        to: '',
      },
    ],
    suites: ['test/events/events.test.ts'],
  },
  {
    name: 'more-than-20-keys',
    promise: 'A developer has at most 20 active keys, even when they are created at the same time.',
    edits: [{ file: 'src/keys/key-change.ts', from: '        .forNoKeyUpdate()\n', to: '' }],
    suites: ['test/keys/keys.test.ts'],
  },
  {
    name: 'form-makes-two-keys',
    promise: 'A form that is sent again makes no second key.',
    edits: [
      {
        file: 'src/keys/key-change.ts',
        from: 'if (made !== null)',
        to: "if (made === '')",
      },
    ],
    suites: ['test/keys/keys.test.ts'],
  },
  {
    name: 'key-of-another-developer',
    promise: 'A developer changes no key of another.',
    edits: [
      {
        file: 'src/keys/revoke.ts',
        from: "if (by.kind === 'developer') key.where({ developer_id: by.developerId });",
        to: '',
      },
    ],
    suites: ['test/keys/keys.test.ts'],
  },
  {
    name: 'page-leaves-the-epoch',
    promise: 'A key that is revoked on a page fails on the next request, on every server.',
    edits: [
      {
        file: 'src/site/settings/keys/keys.tsx',
        from: 'const propagation = await endChange(!wasRevoked);',
        to: "const propagation = 'immediate';",
      },
    ],
    suites: ['test/site/settings/keys.test.ts'],
  },
  {
    name: 'roll-leaves-the-epoch',
    promise: 'A key that is rolled on a page without an overlap fails on the next request, on every server.',
    edits: [
      {
        file: 'src/site/settings/keys/keys.tsx',
        from: 'const propagation = await endChange(true);',
        to: "const propagation = 'immediate';",
      },
    ],
    suites: ['test/site/settings/keys.test.ts'],
  },
  {
    name: 'old-sign-in-changes-keys',
    promise: 'Creating and rolling keys needs a sign-in of the last 15 minutes.',
    edits: [
      {
        file: 'src/site/settings/guards.ts',
        from: 'requireActive(({ isRecent }) => isRecent)',
        to: 'requireActive(() => true)',
      },
    ],
    suites: ['test/site/settings/keys.test.ts'],
  },
  {
    name: 'found-key-flushes-caches',
    promise: 'A key that was revoked before makes no server ask anew about other keys.',
    edits: [
      {
        file: 'src/http/leaked-keys/report.ts',
        from: 'await endChange(isChanged)',
        to: 'await endChange(true)',
      },
    ],
    suites: ['test/site/settings/keys.test.ts'],
  },
  {
    name: 'unknown-reports-unlimited',
    promise: 'An address that sends unknown keys is limited.',
    edits: [
      {
        file: 'src/http/leaked-keys/report.ts',
        from: "if (attempt.kind === 'over_limit') return attempt;",
        to: '',
      },
    ],
    suites: ['test/site/revoke-leaked-key.test.ts'],
  },
  {
    name: 'state-of-the-successor-not-seen',
    promise: 'The list says of a rolled key when its successor is no longer active.',
    edits: [{ file: 'src/keys/key-record.ts', from: "'isActive', ${IS_ACTIVE})", to: "'isActive', true)" }],
    suites: ['test/keys/keys.test.ts'],
  },
  {
    name: 'successors-in-a-chain',
    promise: 'A page costs the same however often a key was rolled.',
    edits: [
      {
        file: 'src/keys/key-record.ts',
        from: 'from api_keys successor where successor.id = api_keys.successor_id)`',
        to: `from api_keys successor where successor.id in (
      with recursive chain (id) as (
        select api_keys.successor_id union select key.successor_id from chain join api_keys key using (id)
      ) select id from chain) limit 1)\``,
      },
    ],
    suites: ['test/worst-cases/many-keys.test.ts'],
  },
  {
    name: 'too-many-keys-a-day',
    promise: 'A developer creates at most 100 keys in 24 hours; those of an operator do not count.',
    edits: [
      {
        file: 'src/keys/key-change.ts',
        from: 'form_hash is not null and created_at > now()',
        to: 'created_at > now()',
      },
    ],
    suites: ['test/keys/keys.test.ts'],
  },
  {
    name: 'no-warning-of-a-rolled-key',
    promise: 'The page warns before somebody revokes the key that replaces a rolled one.',
    edits: [
      {
        file: 'src/keys/keys.ts',
        from: 'successor_id = (select id from api_keys where prefix = ?)',
        to: 'successor_id < (select id from api_keys where prefix = ?) and false',
      },
    ],
    suites: ['test/site/settings/keys.test.ts'],
  },
  {
    name: 'form-for-a-key-that-cannot-be-rolled',
    promise: 'The page of a key that cannot be rolled says why, before anything is sent.',
    edits: [{ file: 'src/site/settings/keys/keys.tsx', from: '        requireRollable(record);\n', to: '' }],
    suites: ['test/site/settings/keys.test.ts'],
  },
  {
    name: 'control-characters-in-names',
    promise: 'The command line takes no name that could control a terminal.',
    edits: [
      {
        file: 'src/commands/arguments.ts',
        from: 'if (!isPlainText(trimmed))',
        to: 'if (trimmed === "")',
      },
    ],
    suites: ['test/cli/commands.test.ts'],
  },
];
