'use strict';

// Loaded into a program before its own modules. Notes each file that is brought to the disk and each file that gets
// another name, once that is done, as a line of JSON in the file named by RECORD_FILES.

const fs = require('node:fs');
const { syncBuiltinESMExports } = require('node:module');

const { open, rename } = fs.promises;
const { fsync } = fs;

function note(...event) {
  fs.appendFileSync(process.env.RECORD_FILES, `${JSON.stringify(event)}\n`);
}

fs.fsync = (fd, done) =>
  fsync(fd, (error) => {
    if (!error) note('sync', fd);
    done(error);
  });

fs.promises.open = async (path, ...rest) => {
  const handle = await open(path, ...rest);
  const sync = handle.sync.bind(handle);
  handle.sync = async () => {
    await sync();
    note('sync', path);
  };
  return handle;
};

fs.promises.rename = async (from, to) => {
  await rename(from, to);
  note('rename', from, to);
};

syncBuiltinESMExports();
