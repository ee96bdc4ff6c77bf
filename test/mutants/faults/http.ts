import type { Fault } from '../fault.js';

/** Faults in what speaks HTTP. */
export const HTTP_FAULTS: readonly Fault[] = [
  {
    name: 'vary-missing-on-days-429',
    promise: 'Every answer varies by the key.',
    edits: [
      {
        file: 'src/http/request/authenticate.ts',
        from: "    if (admission.kind === 'refused') throw",
        to: `    if (exhausted(quotas).map(({ name }) => name).join() === 'day') ctx.remove('Vary');
    if (admission.kind === 'refused') throw`,
      },
    ],
    suites: ['test/limits/rate-limits.test.ts'],
  },
  {
    name: 'limits-missing-on-5xx',
    promise: 'Every answer to a valid key says where the plan stands.',
    edits: [
      {
        file: 'src/http/response/problems.ts',
        from: '    ctx.status = problem.status;',
        to: `  if (problem.status >= 500) { ctx.remove('RateLimit'); ctx.remove('RateLimit-Policy'); }
    ctx.status = problem.status;`,
      },
    ],
    suites: ['test/api/outage.test.ts'],
  },
  {
    name: 'vary-missing-on-5xx',
    promise: 'Every answer varies by the key.',
    edits: [
      {
        file: 'src/http/response/problems.ts',
        from: '    ctx.status = problem.status;',
        to: `  if (problem.status >= 500) ctx.remove('Vary');
    ctx.status = problem.status;`,
      },
    ],
    suites: ['test/api/outage.test.ts'],
  },
  {
    name: 'request-id-other-where-chosen',
    promise: 'A problem has the request id of its answer.',
    edits: [
      {
        file: 'src/http/response/problems.ts',
        from: 'problemDocument(problem, ctx.state.requestId)',
        to: "problemDocument(problem, ctx.req.headers['x-request-id'] === ctx.state.requestId ? 'undefined' : ctx.state.requestId)",
      },
    ],
    suites: ['test/api/requests.test.ts'],
  },
  {
    name: 'no-length-for-head-of-429',
    promise: 'HEAD has the header fields of GET.',
    edits: [
      {
        file: 'src/http/response/problems.ts',
        from: '    ctx.body = problemDocument(problem, ctx.state.requestId);',
        to: `    ctx.body = problemDocument(problem, ctx.state.requestId);
  if (ctx.method === 'HEAD' && problem.status === 429) ctx.length = 0;`,
      },
    ],
    suites: ['test/limits/rate-limits.test.ts'],
  },
  {
    name: 'no-cache-control-on-304-of-contract',
    promise: 'A 304 has the Cache-Control of the 200.',
    edits: [
      {
        file: 'src/http/response/representation.ts',
        from: '      ctx.status = 304;',
        to: "      ctx.remove('Cache-Control');\n      ctx.status = 304;",
      },
    ],
    suites: ['test/api/representations.test.ts'],
  },
  {
    name: 'tag-by-length',
    promise: 'Another body has another entity tag.',
    edits: [
      {
        file: 'src/http/response/representation.ts',
        from: "hash('sha1', content, 'base64')",
        to: "hash('sha1', String(content.length), 'base64')",
      },
    ],
    suites: ['test/api/representations.test.ts'],
  },
  {
    name: 'one-tag-for-all-titles',
    promise: 'Another body has another entity tag.',
    edits: [
      {
        file: 'src/http/response/answers.ts',
        from: "'private, no-cache', policy.compress ?? false);",
        to: "'private, no-cache', policy.compress ?? false);\n  if (operation.id === 'getTitle') ctx.set('ETag', '\"title\"');",
      },
    ],
    suites: ['test/api/representations.test.ts'],
  },
  {
    name: 'title-cut-at-500',
    promise: 'A title of the documented maximum is answered whole.',
    edits: [
      {
        file: 'src/api/getTitle.ts',
        from: 'return { data: title };',
        to: 'return { data: { ...title, title: title.title.slice(0, 1_000) } };',
      },
    ],
    suites: ['test/contract/limits.test.ts'],
  },
  {
    name: 'encoded-path-without-key',
    promise: 'No spelling of a path reaches an operation without a key.',
    edits: [{ file: 'src/http/request/target.ts', from: 'UNRESERVED.test', to: '!UNRESERVED.test' }],
    suites: ['test/api/requests.test.ts', 'test/http/openapi/library.test.ts'],
  },
  {
    name: 'header-fields-dropped',
    promise: 'Every header field is read, however many there are.',
    edits: [
      {
        file: 'src/http/connection/server.ts',
        from: 'server.maxHeadersCount = 0;',
        to: 'server.maxHeadersCount = 1_000;',
      },
    ],
    suites: ['test/http/connection/connections.test.ts'],
  },
  {
    name: 'me-is-stored',
    promise: 'The answer of /me is never stored.',
    edits: [{ file: 'src/api/getMe.ts', from: "{ cache: 'never' }", to: "{ cache: 'revalidate' }" }],
    suites: ['test/api/operations.test.ts'],
  },
  {
    name: 'never-means-revalidate',
    promise: 'The answer of /me is never stored.',
    edits: [
      {
        file: 'src/http/response/answers.ts',
        from: "if (policy.cache === 'never') {",
        to: 'if (policy.cache === undefined) {',
      },
    ],
    suites: ['test/api/operations.test.ts'],
  },
  {
    name: 'late-answer-made',
    promise: 'No late answer replaces that of the deadline.',
    edits: [{ file: 'src/http/response/answers.ts', from: ' || timedOut) return;', to: ') return;' }],
    suites: ['test/http/request/deadline.test.ts'],
  },
  {
    name: 'dispatched-after-the-deadline',
    promise: 'A request that is answered already reaches no operation.',
    edits: [{ file: 'src/http/openapi/dispatch.ts', from: '    if (timedOut) return;\n', to: '' }],
    suites: ['test/http/openapi/dispatch.test.ts'],
  },
  {
    name: 'deadline-aborts-nothing',
    promise: 'A request that is answered already reaches no operation.',
    edits: [{ file: 'src/http/request/deadline.ts', from: '      ctx.state.timedOut = true;\n', to: '' }],
    suites: ['test/http/request/deadline.test.ts'],
  },
  {
    name: 'ready-without-database',
    promise: 'A server without its database is not ready.',
    edits: [
      {
        file: 'src/http/probes/readiness.ts',
        from: "isReady: !isStopping && !lost.includes('database'),",
        to: 'isReady: !isStopping,',
      },
    ],
    suites: ['test/outages/postgres.test.ts', 'test/http/probes/readiness.test.ts'],
  },
  {
    name: 'ready-while-stopping',
    promise: 'A server that stops says so in /readyz.',
    edits: [{ file: 'src/http/probes/readiness.ts', from: 'isReady: !isStopping && !lost', to: 'isReady: !lost' }],
    suites: ['test/http/probes/readiness.test.ts'],
  },
  {
    name: 'unread-answers-kept',
    promise: 'A connection whose client reads nothing is cut.',
    edits: [
      {
        file: 'src/http/connection/server.ts',
        from: 'const timer = setTimeout(() => socket.resetAndDestroy(), timeoutMs);',
        to: 'const timer = setTimeout(() => undefined, timeoutMs);',
      },
    ],
    suites: ['test/http/connection/unread-answers.test.ts'],
  },
  {
    name: 'no-half-open',
    promise: 'A client that closes its side after the request gets its answer.',
    edits: [{ file: 'src/http/connection/server.ts', from: 'httpAllowHalfOpen: true', to: 'httpAllowHalfOpen: false' }],
    suites: ['test/http/connection/connections.test.ts'],
  },
  {
    name: 'requests-sent-ahead-unbounded',
    promise: 'A connection with more than 16 unanswered requests is cut.',
    edits: [
      {
        file: 'src/http/connection/pipelining.ts',
        from: '?.writableEnded === false) {',
        to: '?.writableEnded === undefined && socket.destroyed) {',
      },
    ],
    suites: ['test/http/connection/pipelining.test.ts'],
  },
  {
    name: 'cut-connections-parsed-on',
    promise: 'The requests of a cut connection take neither time nor memory.',
    edits: [
      {
        file: 'src/http/connection/pipelining.ts',
        from: 'if (socket.parser) socket.parser',
        to: 'if (!socket.parser) socket',
      },
    ],
    suites: ['test/http/connection/pipelining.test.ts'],
  },
];
