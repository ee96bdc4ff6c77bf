'use strict';

// Dredd loads hooks from a file, in CommonJS, and takes a file that throws for one without hooks. So this one does
// nothing by itself: the hooks are functions in Dredd's configuration, and the first of them says that it was called.

const hooks = require('hooks');

const { loaded, select, prepare, verify } = hooks.configuration.custom.driver;

hooks.beforeAll((transactions, done) => {
  select(transactions);
  done();
});
hooks.beforeEach((transaction, done) => void prepare(transaction).then(done));
hooks.beforeEachValidation((transaction, done) => void verify(transaction).then(done));

loaded();
