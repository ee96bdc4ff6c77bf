import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import type { Cluster } from './cluster/cluster.js';
import type { EventListener } from './events.js';
import { close, countOthers, createDatabase, openClient } from './lease-client.js';
import { withMutex } from './mutex.js';

/** One process's share in the running server. */
export interface Lease {
  /** Ends the share, and stops the server when nobody else uses it. Never rejects; may be called again. */
  release(): Promise<void>;
}

/** The pauses between attempts to restart a lost server, in milliseconds. */
const BACKOFF_MS = { first: 100, factor: 2, max: 5_000 } as const;

/**
 * Shares a cluster's server, and starts it when nobody has yet.
 *
 * A lease is a connection, so it ends with its process in any case. A held lease keeps the server running. When the
 * server is killed or stopped, the lease restarts it in the background.
 *
 * @param holder - the owner of the lease, shown in `pg_stat_activity`
 * @throws OperatorError when the server cannot be started or refuses the connection
 */
export async function takeLease(cluster: Cluster, holder: string, onEvent: EventListener): Promise<Lease> {
  const { dataDirectory } = cluster;
  const cancellation = new AbortController();
  let client: pg.Client | undefined;
  let recovery: Promise<void> | undefined;
  let departure: Promise<void> | undefined;

  async function connect(): Promise<void> {
    await withMutex(dataDirectory, async () => {
      const opened = await openClient(cluster, holder, onEvent);
      client = opened;
      opened.once('end', () => {
        if (client === opened) client = undefined;
        if (cancellation.signal.aborted) return;
        onEvent('postgres_lost', { dataDirectory });
        recovery ??= recover().finally(() => (recovery = undefined));
      });
      await createDatabase(opened);
    });
  }

  async function recover(): Promise<void> {
    for (let wait: number = BACKOFF_MS.first; !cancellation.signal.aborted;) {
      try {
        await connect();
        onEvent('postgres_back', { dataDirectory });
        return;
      } catch (error) {
        onEvent('postgres_recovery_failed', { dataDirectory, error: messageOf(error), retryInMs: wait });
        await delay(wait, undefined, { signal: cancellation.signal }).catch(() => undefined);
        wait = Math.min(wait * BACKOFF_MS.factor, BACKOFF_MS.max);
      }
    }
  }

  async function leave(): Promise<void> {
    cancellation.abort();
    await recovery;
    try {
      await withMutex(dataDirectory, async () => {
        // Without a client the server is gone, and there is nothing to stop.
        if (!client) return;
        const others = await countOthers(client);
        await close(client);
        if (others > 0) {
          onEvent('postgres_left_running', { dataDirectory, others });
          return;
        }
        await cluster.stop();
        onEvent('postgres_stopped', { dataDirectory });
      });
    } catch (error) {
      onEvent('postgres_stop_failed', { dataDirectory, error: messageOf(error) });
      if (client) await close(client);
    }
  }

  try {
    await connect();
  } catch (error) {
    cancellation.abort();
    if (client) await close(client);
    throw error;
  }
  return { release: () => (departure ??= leave()) };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
