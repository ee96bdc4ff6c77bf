/**
 * The PostgreSQL that comes with the service, for when no DATABASE_URL is set.
 *
 * Several processes (a server, commands) use one cluster in one data directory, started and stopped in any order. Whoever
 * needs it first starts it; it is no child of theirs and outlives them. Each user holds a lease, a connection that ends
 * with its process however that ends, and whoever gives back the last one stops the server. When the last user was killed
 * the server keeps running, until the next one takes it over and leaves.
 *
 * A data directory holds `postgresql` (the cluster and its socket, for its owner alone), `postgresql.log`, `pg_hba.conf` (who
 * is let in) and, for moments, `lock`. It cannot be shared by several machines or containers.
 */
import { findNativePackage, prepareBinaries, type Binaries } from './binaries.js';
import { Cluster } from './cluster/cluster.js';
import { runningAsRoot } from './command.js';
import { chooseDataDirectory, SYSTEM_DIRECTORY } from './cluster/data-directory.js';
import type { EventListener } from './events.js';
import { DATABASE } from './lease-client.js';
import { takeLease, type Lease } from './lease.js';

/** How to reach the service's database, by a Unix socket. */
export interface ConnectionAddress {
  /** The folder of the socket. */
  readonly host: string;
  /** The number in the name of the socket; no port of the network. */
  readonly port: number;
  readonly user: string;
  /** Throws: the server asks for none. */
  readonly password: () => never;
  readonly database: string;
  readonly ssl: false;
  readonly options: string;
}

export interface EmbeddedPostgres {
  /** Absolute path of the data directory. */
  readonly dataDir: string;
  /** The same until it is released, also after the server was restarted. */
  readonly address: ConnectionAddress;
  /**
   * Leaves the server, and stops it when nobody else uses it. Close all other connections first. Never rejects, and takes
   * a bounded time; what went wrong is told as an event.
   */
  release(): Promise<void>;
}

export interface EmbeddedPostgresOptions {
  /** The DATA_DIR setting; undefined for the default place. */
  readonly dataDir: string | undefined;
  /** The folder of this package's package.json. */
  readonly packageRoot: string;
  /** This process's number, shown with its lease in `pg_stat_activity`. */
  readonly pid?: number;
  readonly onEvent?: EventListener;
  /** Where root puts what must not depend on a checkout that PostgreSQL's user cannot enter. */
  readonly systemDirectory?: string;
}

/**
 * Starts the embedded PostgreSQL, or joins the one that another process has started, and keeps it running until released.
 *
 * @throws OperatorError that says what to do: an unsupported platform, a data directory that cannot be used, no space, a
 * cluster of another major version, a server that does not start
 */
export async function acquireEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { systemDirectory = SYSTEM_DIRECTORY, onEvent = () => undefined } = options;
  const isRoot = runningAsRoot();
  const directory = await chooseDataDirectory({
    packageRoot: options.packageRoot,
    configured: options.dataDir,
    isRoot,
    systemDirectory,
  });
  let binaries: Promise<Binaries> | undefined;
  const cluster = new Cluster(directory, () => {
    binaries ??= findNativePackage()
      .then((source) => prepareBinaries(source, directory.account, isRoot ? systemDirectory : directory.path))
      .catch((error: unknown) => {
        // What was in the way may be gone when it is tried again.
        binaries = undefined;
        throw error;
      });
    return binaries;
  });
  let lease: Lease;
  try {
    lease = await takeLease(cluster, String(options.pid ?? ''), onEvent);
  } catch (error) {
    await cluster.close();
    throw error;
  }
  return {
    dataDir: directory.path,
    // Said in full, or the driver would add what PGSSLMODE and PGOPTIONS say of other servers.
    address: { ...(await cluster.address()), database: DATABASE, ssl: false, options: '-c search_path=public' },
    async release() {
      await lease.release();
      await cluster.close();
    },
  };
}
