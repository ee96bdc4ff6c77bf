// Mutation tests of the modules that need no server: StrykerJS changes them bit by bit, and a test must notice each
// change. Each test file runs as a mocha of its own, since StrykerJS' runner for mocha does not support mocha 12.
export default {
  mutate: [
    'src/http/request/client-address.ts',
    'src/http/response/{content-coding,rate-limit-fields,representation}.ts',
    'src/catalog/{position,since}.ts',
    'src/catalog/import/{csv,ndjson,reader}.ts',
    'src/config/*.ts',
    'src/client/retry.ts',
    'src/keys/api-key.ts',
    'src/limits/quotas.ts',
  ],
  testRunner: 'tap',
  plugins: ['@stryker-mutator/tap-runner'],
  tap: {
    testFiles: [
      'test/config/*.test.ts',
      'test/catalog/{position,since}.test.ts',
      'test/client/retry.test.ts',
      'test/http/request/client-address.test.ts',
      'test/http/response/{rate-limit-fields,representation}.test.ts',
      'test/catalog/import/readers.test.ts',
      'test/keys/api-key.test.ts',
      'test/limits/quotas.test.ts',
    ],
    nodeArgs: [
      ...['--import', 'tsx', '-r', '{{hookFile}}'],
      ...['node_modules/mocha/bin/mocha.js', '--no-config', '--reporter', 'tap', '{{testFile}}'],
    ],
    forceBail: true,
  },
  coverageAnalysis: 'perTest',
  thresholds: { high: 95, low: 90, break: 90 },
  reporters: ['clear-text'],
  clearTextReporter: { allowColor: false, logTests: false },
  tempDirName: '.cache/stryker',
  ignorePatterns: ['.build', '.cache', '.data'],
};
