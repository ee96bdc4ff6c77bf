import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Servers that speak Redis. */
const PROGRAMS = ['redis-server', 'valkey-server'];

/** Where package managers put programs that a short PATH leaves out. */
const MORE_FOLDERS = ['/usr/local/bin', '/usr/local/sbin', '/usr/sbin', '/opt/homebrew/bin'];

/** The commands of each package manager, in turn until the program is there. */
const INSTALLATIONS: readonly { readonly asRoot: boolean; readonly commands: readonly (readonly string[])[] }[] = [
  {
    asRoot: true,
    commands: [
      ['apt-get', 'install', '--yes', '--no-install-recommends', 'redis-server'],
      ['apt-get', 'update'],
      ['apt-get', 'install', '--yes', '--no-install-recommends', 'redis-server'],
    ],
  },
  ...['redis', 'valkey'].flatMap((name) => [
    { asRoot: true, commands: [['dnf', 'install', '--assumeyes', name]] },
    { asRoot: true, commands: [['yum', 'install', '--assumeyes', name]] },
    { asRoot: true, commands: [['apk', 'add', name]] },
    { asRoot: true, commands: [['zypper', '--non-interactive', 'install', name]] },
    { asRoot: true, commands: [['pacman', '--sync', '--refresh', '--noconfirm', name]] },
    { asRoot: false, commands: [['brew', 'install', name]] },
  ]),
];

/** Bound on one command of a package manager, in milliseconds. */
const INSTALL_TIMEOUT_MS = 300_000;

/** @returns the path of a Redis server program; undefined where there is none */
export function findRedisProgram(): string | undefined {
  return PROGRAMS.map(find).find((path) => path !== undefined);
}

/**
 * Installs a Redis server with the system's package manager: as root, or through sudo where that asks for no password.
 *
 * @param say - told what is done
 * @returns the path of the program
 * @throws Error that says in one line what to do, where it cannot be installed
 */
export function installRedis(say: (line: string) => void): string {
  const isRoot = process.getuid?.() === 0;
  const sudo = isRoot ? [] : ['sudo', '-n'];
  const mayBecomeRoot = isRoot || (find('sudo') !== undefined && run(['sudo', '-n', 'true']));
  for (const { asRoot, commands } of INSTALLATIONS) {
    if (find(commands[0]?.[0] ?? '') === undefined || (asRoot && !mayBecomeRoot)) continue;
    for (const command of commands) {
      const full = asRoot ? [...sudo, ...command] : command;
      say(full.join(' '));
      run(full);
      const program = findRedisProgram();
      if (program !== undefined) return program;
    }
  }
  throw new Error(
    'The tests need a Redis server: install the package redis-server (apt-get), redis (brew, dnf, apk, pacman) or valkey.',
  );
}

function find(program: string): string | undefined {
  return [...(process.env.PATH ?? '').split(delimiter), ...MORE_FOLDERS]
    .map((folder) => join(folder, program))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

/** @returns whether it succeeded */
function run([program = '', ...args]: readonly string[]): boolean {
  const { status } = spawnSync(program, args, {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdio: 'ignore',
    timeout: INSTALL_TIMEOUT_MS,
  });
  return status === 0;
}
