import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** A program that tests start and that the system's package manager provides. */
export interface SystemProgram {
  /** For messages. */
  readonly title: string;
  /** Programs that do equally well, the best first. */
  readonly programs: readonly string[];
  /** Names of the packages that have it, the best first. */
  readonly packages: readonly string[];
  /** The same in Debian and in systems made from it. */
  readonly debianPackages: readonly string[];
}

function systemProgram(
  title: string,
  programs: readonly string[],
  packages: readonly string[] = programs,
  debianPackages = packages,
): SystemProgram {
  return { title, programs, packages, debianPackages };
}

/** A server that speaks Redis. */
export const REDIS = systemProgram(
  'a Redis server',
  ['redis-server', 'valkey-server'],
  ['redis', 'valkey'],
  ['redis-server'],
);

/** The balancer that the guide for operators describes. */
export const HAPROXY = systemProgram('HAProxy', ['haproxy']);

/** The pooler that the guide for operators describes. */
export const PGBOUNCER = systemProgram('PgBouncer', ['pgbouncer']);

/**
 * The browser that the pages are tested in. Debian has it as a package; Playwright's own would be one more download.
 * The headless shell is the same engine without a window, as Playwright starts it, and takes two thirds of the time.
 */
export const CHROMIUM = systemProgram(
  'Chromium',
  ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'],
  ['chromium'],
  ['chromium-headless-shell', 'chromium'],
);

/** The checker of Prometheus' rules. Its package also has a server, so it is not installed for the tests. */
export const PROMTOOL = systemProgram('promtool', ['promtool'], ['prometheus']);

/** The checker of systemd's units. It is part of systemd, which is not installed for the tests. */
export const SYSTEMD_ANALYZE = systemProgram('systemd-analyze', ['systemd-analyze'], ['systemd']);

/** The client of Kubernetes, which has Kustomize. No system's package manager has a current one. */
export const KUBECTL = systemProgram('kubectl', ['kubectl']);

/** Builds container images without a daemon. */
export const BUILDAH = systemProgram('Buildah', ['buildah']);

/** Where package managers put programs that a short PATH leaves out. */
const MORE_FOLDERS = ['/usr/local/bin', '/usr/local/sbin', '/usr/sbin', '/opt/homebrew/bin'];

interface Manager {
  readonly asRoot: boolean;
  /** The command that installs a package, without the package's name. */
  readonly install: readonly string[];
  /** The command that fetches the list of packages, where `install` does not. */
  readonly update?: readonly string[];
}

const MANAGERS: readonly Manager[] = [
  {
    asRoot: true,
    install: ['apt-get', 'install', '--yes', '--no-install-recommends'],
    update: ['apt-get', 'update'],
  },
  { asRoot: true, install: ['dnf', 'install', '--assumeyes'] },
  { asRoot: true, install: ['yum', 'install', '--assumeyes'] },
  { asRoot: true, install: ['apk', 'add'] },
  { asRoot: true, install: ['zypper', '--non-interactive', 'install'] },
  { asRoot: true, install: ['pacman', '--sync', '--refresh', '--noconfirm'] },
  { asRoot: false, install: ['brew', 'install'] },
];

/** Bound on one command of a package manager, in milliseconds. */
const INSTALL_TIMEOUT_MS = 300_000;

/** @returns the path of a program; undefined where there is none */
export function findProgram({ programs }: SystemProgram): string | undefined {
  return programs.map(find).find((path) => path !== undefined);
}

/**
 * Finds a program, or installs it with the system's package manager: as root, or through sudo where that asks for no
 * password. Installs nothing where `INSTALL=no` is set.
 *
 * @param say - told what is done
 * @returns the path of the program
 * @throws Error that says in one line what to do, where it cannot be installed
 */
export function provideProgram(wanted: SystemProgram, say: (line: string) => void = () => undefined): string {
  const there = findProgram(wanted);
  if (there !== undefined) return there;
  const isRoot = process.getuid?.() === 0;
  const sudo = isRoot ? [] : ['sudo', '-n'];
  const mayBecomeRoot = isRoot || (find('sudo') !== undefined && run(['sudo', '-n', 'true']));
  for (const { asRoot, install, update } of process.env.INSTALL === 'no' ? [] : MANAGERS) {
    const [manager = ''] = install;
    if (find(manager) === undefined || (asRoot && !mayBecomeRoot)) continue;
    const names = manager === 'apt-get' ? wanted.debianPackages : wanted.packages;
    const installations = names.map((name) => [...install, name]);
    for (const command of update ? [...installations, update, ...installations] : installations) {
      const full = asRoot ? [...sudo, ...command] : command;
      say(full.join(' '));
      run(full);
      const program = findProgram(wanted);
      if (program !== undefined) return program;
    }
  }
  const names = [...new Set([...wanted.debianPackages, ...wanted.packages])].join(', or ');
  throw new Error(
    `The tests need ${wanted.title}: install the package ${names} with the package manager of your system.`,
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
