import { benchImport } from './import.js';
import { print } from './measure.js';
import { benchReads } from './reads.js';
import { benchWrites } from './writes.js';

// Measures what the README says about size and speed, on a PostgreSQL of its own, which goes away with this process.
// Arguments name the parts to run; all run by default. The environment may make them smaller.

const IMPORT_ROWS = Number(process.env.IMPORT_ROWS ?? 1_000_000);
const READ_SIZES = (process.env.READ_SIZES ?? '10000 1000000 10000000').split(' ').map(Number);
const READ_SECONDS = Number(process.env.READ_SECONDS ?? 60);
const WRITE_SECONDS = Number(process.env.WRITE_SECONDS ?? 60);

const PARTS: Readonly<Record<string, () => Promise<boolean>>> = {
  import: () => benchImport(IMPORT_ROWS),
  reads: () => benchReads(READ_SIZES, READ_SECONDS),
  writes: async () => {
    await benchWrites(WRITE_SECONDS);
    return true;
  },
};

const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(PARTS);
let isMet = true;
for (const name of names) {
  const run = PARTS[name];
  if (run === undefined) throw new Error(`There is no part ${name}: there are ${Object.keys(PARTS).join(', ')}`);
  isMet = (await run()) && isMet;
}
print(isMet ? '\nAll goals were met.\n' : '\nNot all goals were met.\n');
process.exit(isMet ? 0 : 1);
