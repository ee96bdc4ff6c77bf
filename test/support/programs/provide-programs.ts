import { CHROMIUM, HAPROXY, PGBOUNCER, provideProgram, REDIS } from './system-program.js';

// Makes sure that the programs are there that the tests start, before they do: an installation takes its time. Without
// HAProxy, PgBouncer or Chromium the tests that need it are skipped, and say so.
const KNOWN = {
  redis: { program: REDIS, isRequired: true },
  haproxy: { program: HAPROXY, isRequired: false },
  pgbouncer: { program: PGBOUNCER, isRequired: false },
  chromium: { program: CHROMIUM, isRequired: false },
};

for (const name of process.argv.slice(2)) {
  const { program, isRequired } = KNOWN[name as keyof typeof KNOWN];
  try {
    provideProgram(program, (line) => {
      process.stdout.write(`${line}\n`);
    });
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    if (isRequired) process.exitCode = 1;
  }
}
