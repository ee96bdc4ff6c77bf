/**
 * The PostgreSQL that comes with the service, used when no DATABASE_URL is set.
 *
 * Several processes (a server, commands) use one cluster in one data directory, and start and stop in any order. The
 * first process starts the server, which is not its child and outlives it. Each process holds a lease, a connection
 * that ends with the process in any case. The process that releases the last lease stops the server. When the last
 * process was killed, the server runs on until the next process has used it.
 *
 * A data directory holds `postgresql` (the cluster and its socket, for its owner alone), `postgresql.log`,
 * `pg_hba.conf` and, for moments, `lock`. Several machines or containers cannot share it.
 */
import { findNativePackage, prepareBinaries, type Binaries } from './binaries.js';
import { Cluster } from './cluster/cluster.js';
import { runningAsRoot } from './command.js';
import { chooseDataDirectory, SYSTEM_DIRECTORY } from './cluster/data-directory.js';
import type { EventListener } from './events.js';
import { DATABASE } from './lease-client.js';
import { takeLease, type Lease } from './lease.js';

/** The address of the service's database, by a Unix socket. */
export interface ConnectionAddress {
  /** The folder of the socket. */
  readonly host: string;
  /** The number in the name of the socket; not a port of the network. */
  readonly port: number;
  readonly user: string;
  /** Throws: the server asks for no password. */
  readonly password: () => never;
  readonly database: string;
  readonly ssl: false;
  readonly options: string;
}

export interface EmbeddedPostgres {
  /** Absolute path of the data directory. */
  readonly dataDir: string;
  /** It does not change until the release, also when the server restarts. */
  readonly address: ConnectionAddress;
  /**
   * Releases the lease, and stops the server when nobody else uses it. Close all other connections first. Takes a
   * bounded time and never rejects: an event reports a failure.
   */
  release(): Promise<void>;
}

export interface EmbeddedPostgresOptions {
  /** The DATA_DIR setting; undefined for the default place. */
  readonly dataDir: string | undefined;
  /** The folder of this package's package.json. */
  readonly packageRoot: string;
  /** The id of this process, shown with its lease in `pg_stat_activity`. */
  readonly pid?: number;
  readonly onEvent?: EventListener;
  /** Where root puts files that PostgreSQL's user must reach when it cannot enter the checkout. */
  readonly systemDirectory?: string;
}

/**
 * Starts the embedded PostgreSQL, or joins the one that another process has started. Keeps it running until released.
 *
 * @throws OperatorError with the remedy, such as for an unusable data directory, a full disk or another major version
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
        // The next attempt tries again: the obstacle may be gone.
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
    // All options are given, so that the driver does not add PGSSLMODE and PGOPTIONS, which concern other servers.
    address: { ...(await cluster.address()), database: DATABASE, ssl: false, options: '-c search_path=public' },
    async release() {
      await lease.release();
      await cluster.close();
    },
  };
}
