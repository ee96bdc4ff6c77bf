import type { Fault } from '../fault.js';

const SAFETY = ['test/embedded-postgres/safety.test.ts'] as const;
const SHARING = ['test/embedded-postgres/sharing.test.ts'] as const;

/** Faults in what runs the embedded PostgreSQL. */
export const EMBEDDED_FAULTS: readonly Fault[] = [
  {
    name: 'links-read',
    promise: 'As root the service reads no file of its cluster through a link.',
    edits: [
      {
        file: 'src/embedded-postgres/cluster.ts',
        from: 'constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK',
        to: 'constants.O_RDONLY',
      },
      {
        file: 'src/embedded-postgres/cluster.ts',
        from: String.raw`/^\d+(?:\.\d+)?$/.exec(existing.trim())?.[0] ?? 'unknown version'`,
        to: 'existing.trim()',
      },
    ],
    suites: SAFETY,
  },
  {
    name: 'foreign-data-directory',
    promise: 'As root the service uses no data directory that another account could replace.',
    edits: [
      {
        file: 'src/embedded-postgres/data-directory.ts',
        from: 'await makeTrusted(path, trusted, account);',
        to: 'await mkdir(path, { recursive: true });\n  void trusted;',
      },
    ],
    suites: SAFETY,
  },
  {
    name: 'parents-of-others',
    promise: 'As root the service uses no data directory whose parents another account could replace.',
    edits: [
      {
        file: 'src/embedded-postgres/data-directory.ts',
        from: '  await makeTrusted(dirname(path), trusted, undefined, dataDirectory);',
        to: '  await mkdir(dirname(path), { recursive: true });',
      },
    ],
    suites: SAFETY,
  },
  {
    name: 'password-given-away',
    promise: 'What answers in place of PostgreSQL gets no password.',
    edits: [
      {
        file: 'src/embedded-postgres/index.ts',
        from: 'password: refusePassword,',
        to: 'password: (() => process.env.PGPASSWORD) as unknown as typeof refusePassword,',
      },
    ],
    suites: SAFETY,
  },
  {
    name: 'socket-for-everybody',
    promise: 'Other accounts cannot reach the embedded PostgreSQL.',
    edits: [
      { file: 'src/embedded-postgres/server.ts', from: "listen_addresses: ''", to: "listen_addresses: '127.0.0.1'" },
    ],
    suites: SAFETY,
  },
  {
    name: 'server-outlives-its-process',
    promise: 'The embedded PostgreSQL ends with the process that started it.',
    edits: [{ file: 'src/embedded-postgres/server.ts', from: 'read -r _ <&3; kill -INT $$', to: 'read -r _ <&3' }],
    suites: SHARING,
  },
  {
    name: 'starts-without-turns',
    promise: 'Processes that start the embedded PostgreSQL at the same moment take turns.',
    edits: [
      {
        file: 'src/embedded-postgres/index.ts',
        from: 'const unlock = await takeLock(directory.path);',
        to: 'const unlock = await takeLock(directory.path);\n  await unlock();',
      },
    ],
    suites: SHARING,
  },
  {
    name: 'stale-lock-believed',
    promise: 'The next start recovers from a server that was killed, whoever has its process number now.',
    edits: [
      {
        file: 'src/embedded-postgres/server.ts',
        from: '|| !(await isServerOf(cluster, pid))',
        to: '|| (await isServerOf(cluster, -1))',
      },
    ],
    suites: SHARING,
  },
];
