import type { Fault } from '../fault.js';

/** Faults in what runs the embedded PostgreSQL. */
export const EMBEDDED_FAULTS: readonly Fault[] = [
  {
    name: 'links-followed',
    promise: 'As root the service follows no link in its data directory.',
    edits: [
      {
        file: 'src/embedded-postgres/cluster/own-files.ts',
        from: 'constants.O_NOFOLLOW | constants.O_NONBLOCK',
        to: 'constants.O_NONBLOCK',
      },
    ],
    suites: ['test/embedded-postgres/safety.test.ts'],
  },
  {
    name: 'foreign-data-directory',
    promise: 'As root the service uses no data directory of another account.',
    edits: [
      {
        file: 'src/embedded-postgres/cluster/data-directory.ts',
        from: 'if (account) await requireTrusted(real, account);',
        to: '',
      },
    ],
    suites: ['test/embedded-postgres/safety.test.ts'],
  },
  {
    name: 'parents-of-others',
    promise: 'As root the service uses no data directory that another account could replace.',
    edits: [
      {
        file: 'src/embedded-postgres/cluster/trusted-directory.ts',
        from: 'else if (found && isParent &&',
        to: 'else if (found && !isParent &&',
      },
    ],
    suites: ['test/embedded-postgres/safety.test.ts'],
  },
  {
    name: 'planted-links-followed',
    promise: 'As root the service follows no link of another account on the way to its data directory.',
    edits: [
      {
        file: 'src/embedded-postgres/cluster/trusted-directory.ts',
        from: 'if (found.uid !== 0) throw distrust(dataDirectory, path, found);',
        to: '',
      },
    ],
    suites: ['test/embedded-postgres/safety.test.ts'],
  },
  {
    name: 'password-given-away',
    promise: 'What answers in place of PostgreSQL gets no password.',
    edits: [
      {
        file: 'src/embedded-postgres/cluster/cluster.ts',
        from: 'password: refusePassword }',
        to: 'password: (() => process.env.PGPASSWORD) as unknown as () => never }',
      },
    ],
    suites: ['test/embedded-postgres/safety.test.ts'],
  },
  {
    name: 'socket-for-everybody',
    promise: 'Other accounts cannot reach the embedded PostgreSQL.',
    edits: [
      {
        file: 'src/embedded-postgres/cluster/cluster.ts',
        from: "settings: { listen_addresses: '' }",
        to: "settings: { listen_addresses: '127.0.0.1' }",
      },
    ],
    suites: ['test/embedded-postgres/safety.test.ts'],
  },
];
