import { constants } from 'node:fs';
import { mkdtemp, open, rm, symlink } from 'node:fs/promises';
import { platform, tmpdir } from 'node:os';
import { join } from 'node:path';
import { SOCKET_NAME } from './server-state.js';

/** The longest address of a Unix socket on every system, in bytes: macOS takes 104, Linux 108. */
const MAX_SOCKET_PATH = 103;

/** A path to a folder that is short enough for the address of a socket. */
export interface SocketFolder {
  readonly path: string;
  close(): Promise<void>;
}

/**
 * Finds a short path to the folder of a socket: the folder itself, or another path to it.
 *
 * @param folder - exists; absolute
 */
export async function openSocketFolder(folder: string): Promise<SocketFolder> {
  if (Buffer.byteLength(join(folder, SOCKET_NAME)) <= MAX_SOCKET_PATH) {
    return { path: folder, close: () => Promise.resolve() };
  }
  if (platform() === 'linux') {
    const handle = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY);
    return { path: `/proc/self/fd/${handle.fd}`, close: () => handle.close() };
  }
  const place = await mkdtemp(join(tmpdir(), 'catalog-'));
  const link = join(place, 's');
  await symlink(folder, link);
  return { path: link, close: () => rm(place, { recursive: true, force: true }) };
}
