import type { Fault } from '../../fault.js';

/** Faults in what writes the log. */
export const LOG_FAULTS: readonly Fault[] = [
  {
    name: 'key-in-log-of-500',
    promise: 'No log line holds a key.',
    edits: [
      {
        file: 'src/http/telemetry/record-requests.ts',
        from: '        key_prefix: caller?.keyPrefix,',
        to: `        key_prefix: caller?.keyPrefix,
        headers: status === 500 ? ctx.req.headers : undefined,`,
      },
    ],
    suites: ['test/api/outage.test.ts'],
  },
  {
    name: 'key-in-log-of-malformed',
    promise: 'No log line holds a key of a malformed request.',
    edits: [
      {
        file: 'src/http/connection/server.ts',
        from: '    const rejection = rejectConnection(error, socket);',
        to: `    console.error(String((error as { rawPacket?: Buffer }).rawPacket));
    const rejection = rejectConnection(error, socket);`,
      },
    ],
    suites: ['test/cli/request-log.test.ts'],
  },
  {
    name: 'raw-url-in-program-log',
    promise: 'No log line of the program holds a key.',
    edits: [
      {
        file: 'src/http/telemetry/record-requests.ts',
        from: 'url: redactUrl(target, isFound),',
        to: 'url: ctx.req.url,',
      },
    ],
    suites: ['test/cli/request-log.test.ts'],
  },
  {
    name: 'secret-without-its-prefix',
    promise: 'No log line holds 12 characters of a secret, also without the prefix.',
    edits: [
      {
        file: 'src/http/telemetry/redact-url.ts',
        from: "if (!text.includes('%') && !mayHoldSecret(text)) return text;",
        to: "if (!text.includes('%') && !text.includes('svc_')) return text;",
      },
    ],
    suites: ['test/api/secrets.test.ts'],
  },
];
