import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { eventually } from '../eventually.js';
import { readGuide } from '../guides.js';
import { temporaryFolder } from '../temporary-folder.js';

/** What HAProxy counts of one server, by the names of its columns. */
export type ServerStatistics = Readonly<Record<string, string>>;

/** A balancer that runs. It is stopped with the test run at the latest. */
export interface Balancer {
  /** @returns the state of each server behind it, by the name of the server */
  servers(): Promise<ReadonlyMap<string, ServerStatistics>>;
  /** @returns its log so far: warnings and errors */
  said(): string;
  /** Replaces its process by a new one, as a changed configuration requires. The old one ends by itself. */
  reload(): Promise<void>;
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
  await writeFile(file, `global\n  stats socket ${socket} expose-fd listeners\n\n${configuration}`);
  let said = '';
  const children = new Set<ChildProcess>();
  const kill = (): void => children.forEach((child) => void child.kill('SIGKILL'));
  process.once('exit', kill);

  function start(...more: string[]): ChildProcess {
    const child = spawn(program, ['-db', '-f', file, ...more], { stdio: ['ignore', 'ignore', 'pipe'] });
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (said += chunk));
    children.add(child);
    child.once('exit', () => children.delete(child));
    return child;
  }

  let child = start();

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

  const answers = (): Promise<unknown> =>
    eventually('HAProxy answers', async () => {
      if (child.exitCode !== null) throw new Error(`HAProxy did not start: ${said}`);
      return (await servers()).size > 0;
    });

  await answers();
  return {
    servers,
    said: () => said,
    async reload() {
      // The new process takes over the listening sockets, so no connection is refused in between.
      const old = child;
      child = start('-x', socket, '-sf', String(old.pid));
      await answers();
    },
    async stop() {
      process.removeListener('exit', kill);
      const ended = [...children].map((one) => once(one, 'exit'));
      kill();
      await Promise.all(ended);
    },
  };
}

/** The configuration of the guide for a balancer on this machine. @param ports - of the balancer and of both servers */
export async function guideConfiguration(ports: Readonly<Record<'balancer' | 'one' | 'two', number>>): Promise<string> {
  const [, shown = ''] = /```haproxy\n([\s\S]+?)```/.exec(await readGuide('scale-out')) ?? [];
  const changes: [string, string][] = [
    ['    bind :443 ssl crt /etc/haproxy/certificate.pem alpn h2,http/1.1\n', ''],
    ['bind :80', `bind 127.0.0.1:${ports.balancer}`],
    ['10.0.0.1:8080', `127.0.0.1:${ports.one}`],
    ['10.0.0.2:8080', `127.0.0.1:${ports.two}`],
  ];
  return changes.reduce((text, [from, to]) => {
    assert.ok(text.includes(from), from);
    return text.replace(from, to);
  }, shown);
}
