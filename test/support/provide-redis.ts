import { findRedisProgram, installRedis } from './redis-program.js';

// Makes sure that there is a Redis server for the tests to start, before they do: an installation takes its time.
try {
  if (findRedisProgram() === undefined) {
    installRedis((line) => {
      process.stdout.write(`${line}\n`);
    });
  }
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 1;
}
