import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { eventually } from '../eventually.js';
import { temporaryFolder } from '../temporary-folder.js';

/** What HAProxy counts of one server, by the names of its columns. */
export type ServerStatistics = Readonly<Record<string, string>>;

/** A balancer that runs. It is stopped with the test run at the latest. */
export interface Balancer {
  /** @returns the state of each server behind it, by the name of the server */
  servers(): Promise<ReadonlyMap<string, ServerStatistics>>;
  /** @returns its log so far: warnings and errors */
  said(): string;
  stop(): Promise<void>;
}

/**
 * Starts HAProxy.
 *
 * @param program - its path
 * @param configuration - all but the section `global`
 */
export async function startBalancer(program: string, configuration: string): Promise<Balancer> {
  const folder = await temporaryFolder();
  const socket = join(folder, 'haproxy.sock');
  const file = join(folder, 'haproxy.cfg');
  await writeFile(file, `global\n  stats socket ${socket}\n\n${configuration}`);
  const child = spawn(program, ['-db', '-f', file], { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (said += chunk));
  const ended = once(child, 'exit');
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);

  async function servers(): Promise<ReadonlyMap<string, ServerStatistics>> {
    const connection = connect(socket);
    await once(connection, 'connect');
    connection.end('show stat\n');
    const [names = [], ...rows] = (await text(connection))
      .replace(/^# /, '')
      .trimEnd()
      .split('\n')
      .map((line) => line.split(','));
    const all = rows.map((cells) => Object.fromEntries(names.map((name, i) => [name, cells[i] ?? ''])));
    return new Map(
      all
        .filter(({ svname = '' }) => !['FRONTEND', 'BACKEND'].includes(svname))
        .map((statistics) => [statistics.svname ?? '', statistics]),
    );
  }

  await eventually('HAProxy answers', async () => {
    if (child.exitCode !== null) throw new Error(`HAProxy did not start: ${said}`);
    return (await servers()).size > 0;
  });
  return {
    servers,
    said: () => said,
    async stop() {
      process.removeListener('exit', kill);
      child.kill('SIGKILL');
      await ended;
    },
  };
}
