'use strict';

// Mocha's own "spec" report, and the run's numbers as one line of JSON in the file that MOCHA_RESULTS names, because
// text that a test prints cannot be told from mocha's summary with certainty. On a build machine (CI=true) a skipped
// test fails the run, unless its line says which part of the machine is missing (see support/programs/skip.ts).

const { appendFileSync } = require('node:fs');
const { reporters, Runner } = require('mocha');

const results = process.env.MOCHA_RESULTS;
// A mocha that a test starts is not part of this run's numbers.
delete process.env.MOCHA_RESULTS;

const EXPLAINED = /\(needs .+, which this machine lacks\)$/;

module.exports = class extends reporters.Spec {
  #unexplained = [];

  constructor(runner, options) {
    super(runner, options);
    runner.on(Runner.constants.EVENT_TEST_PENDING, (test) => {
      if (process.env.CI === 'true' && !EXPLAINED.test(test.title)) this.#unexplained.push(test.fullTitle());
    });
    if (results) {
      runner.once(Runner.constants.EVENT_RUN_END, () => {
        const { passes, failures, pending } = this.stats;
        appendFileSync(results, `${JSON.stringify({ passes, failures, pending })}\n`);
      });
    }
  }

  /** Called by mocha at the end; what is passed on becomes the exit status. */
  done(failures, end) {
    for (const title of this.#unexplained) console.error(`  skipped without a reason: ${title}`);
    end(failures + this.#unexplained.length);
  }
};
