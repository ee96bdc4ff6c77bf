import { execFile } from 'node:child_process';
import { chown, copyFile, mkdir, readFile, realpath, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { fileURLToPath } from 'node:url';
import { ROOT } from '../support/guides.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const execute = promisify(execFile);

/** Bound on one command, in milliseconds. */
const COMMAND_TIMEOUT_MS = 240_000;

const CONTAINERFILE = fileURLToPath(new URL('.deploy/Containerfile', ROOT));

/** What the image says about itself, in Docker's format. */
interface ImageConfig {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly WorkingDir: string;
  readonly Labels: Readonly<Record<string, string>>;
  readonly Healthcheck: { readonly Test: readonly string[] };
}

/** The built image, and its files. */
export interface BuiltImage {
  readonly config: ImageConfig;
  /** The folder of its files. */
  readonly root: string;
  /** The folder of the service's own files. */
  readonly service: string;
  /** Starts a program of the image as its user, with its files alone, none of which can be written. */
  run(program: readonly string[]): readonly string[];
  /** Mounts a secret as the usual runtimes do. @returns its path in the image */
  addSecret(name: string, text: string): Promise<string>;
}

/**
 * Builds the image from a package, on a base of this machine's Node.js. The base has the layout of the usual one, which
 * a test would have to download.
 *
 * @param buildah - the program
 * @param packageFolder - the unpacked package
 */
export async function buildImage(buildah: string, packageFolder: string): Promise<BuiltImage> {
  const folder = await temporaryFolder();
  const run = async (...args: string[]): Promise<string> => {
    const places = ['--root', join(folder, 'storage'), '--runroot', join(folder, 'run'), '--storage-driver', 'vfs'];
    const { stdout } = await execute(buildah, [...places, ...args], {
      env: { ...process.env, BUILDAH_ISOLATION: 'chroot', BUILDAH_FORMAT: 'docker' },
      timeout: COMMAND_TIMEOUT_MS,
      maxBuffer: 2 ** 24,
    });
    return stdout.trim();
  };
  await writeFile(join(folder, 'Base'), 'FROM scratch\nCOPY base /\n');
  await layOutBase(join(folder, 'base'));
  await run('build', '-t', 'localhost/base', '-f', join(folder, 'Base'), folder);
  const { version } = JSON.parse(await readFile(join(packageFolder, 'package.json'), 'utf8')) as { version: string };
  const args = ['BASE_IMAGE=localhost/base', `VERSION=${version}`, 'REVISION=none'];
  const options = args.flatMap((argument) => ['--build-arg', argument]);
  // Everything comes from the package, nothing from the build's own folder.
  const empty = join(folder, 'empty');
  await mkdir(empty);
  const source = ['--build-context', `package=${packageFolder}`];
  await run('build', ...options, ...source, '-t', 'localhost/service', '-f', CONTAINERFILE, empty);
  const { Docker: description } = JSON.parse(await run('inspect', '--type', 'image', 'localhost/service')) as {
    Docker: { config: ImageConfig };
  };
  const root = await run('mount', await run('from', 'localhost/service'));
  const { config } = description;
  return {
    config,
    root,
    service: join(root, config.WorkingDir),
    run: (program) => confined(root, config, program),
    async addSecret(name, text) {
      const path = `/run/secrets/${name}`;
      await mkdir(dirname(root + path), { recursive: true });
      await writeFile(root + path, text, { mode: 0o400 });
      await chown(root + path, Number(config.User.split(':')[0]), 0);
      return path;
    },
  };
}

/** A command that starts a program as a container's runtime does, with the files read-only. It keeps the process ID. */
function confined(root: string, { User, Env, WorkingDir }: ImageConfig, program: readonly string[]): readonly string[] {
  const [user = '', group = ''] = User.split(':');
  const places = [`--root=${root}`, `--wd=${WorkingDir}`, `--setuid=${user}`, `--setgid=${group}`];
  const mount = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"';
  return ['unshare', '--mount', 'sh', '-c', mount, 'sh', root, 'env', ...Env, 'unshare', ...places, ...program];
}

/** Node.js and the libraries that it needs, where the usual base has them. */
async function layOutBase(folder: string): Promise<void> {
  const node = await realpath(process.execPath);
  const { stdout } = await execute('ldd', [node]);
  const libraries = stdout.match(/\/\S+/g) ?? [];
  for (const path of libraries) await place(path, join(folder, path));
  await place(node, join(folder, 'nodejs/bin/node'));
}

async function place(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  await copyFile(from, to);
}
