'use strict';

// Mocha's own "spec" report, and the run's numbers as one line of JSON in the file that MOCHA_RESULTS names, because
// text that a test prints cannot be told from mocha's summary with certainty.

const { appendFileSync } = require('node:fs');
const { reporters, Runner } = require('mocha');

const results = process.env.MOCHA_RESULTS;
// A mocha that a test starts is not part of this run's numbers.
delete process.env.MOCHA_RESULTS;

module.exports = class extends reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    if (results) {
      runner.once(Runner.constants.EVENT_RUN_END, () => {
        const { passes, failures, pending } = this.stats;
        appendFileSync(results, `${JSON.stringify({ passes, failures, pending })}\n`);
      });
    }
  }
};
