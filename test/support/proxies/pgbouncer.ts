import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { eventually } from '../eventually.js';
import { freePort } from '../programs/free-port.js';
import { temporaryFolder } from '../temporary-folder.js';

/** A pooler that runs. It is stopped with the test run at the latest. */
export interface Pooler {
  /** The URL of the database, with the pooler's address in it. */
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * Starts PgBouncer in front of a database.
 *
 * @param program - its path
 */
export async function startPooler(
  program: string,
  databaseUrl: string,
  mode: 'session' | 'transaction' | 'statement',
  poolSize: number,
): Promise<Pooler> {
  const url = new URL(databaseUrl);
  const folder = await temporaryFolder();
  const file = join(folder, 'pgbouncer.ini');
  const port = await freePort();
  const target = `host=${url.hostname} port=${url.port} user=${url.username} password=${url.password}`;
  await writeFile(
    file,
    `[databases]\n* = ${target}\n
[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =\nauth_type = any
pool_mode = ${mode}\ndefault_pool_size = ${poolSize}\n`,
  );
  await chmod(folder, 0o755);
  // It refuses to run as root.
  const child = spawn(program, ['-q', ...(process.getuid?.() === 0 ? ['-u', 'nobody'] : []), file], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (said += chunk));
  const ended = once(child, 'exit');
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  url.port = String(port);
  await eventually('PgBouncer answers', async () => {
    if (child.exitCode !== null) throw new Error(`PgBouncer did not start: ${said}`);
    const client = new pg.Client(url.href);
    await client.connect();
    await client.end();
    return true;
  });
  return {
    url: url.href,
    async stop() {
      process.removeListener('exit', kill);
      kill();
      await ended;
    },
  };
}
