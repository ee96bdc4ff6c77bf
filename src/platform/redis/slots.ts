import { once } from 'node:events';
import { Redis } from 'ioredis';
import { withTimeout } from '../async/with-timeout.js';
import { requireForm } from './reply.js';
import { clientOptions, CONNECT_TIMEOUT_MS } from './topology.js';

export const SLOTS = 16_384;

/** Slots in a row, the last one included, and their master. */
export interface SlotRange {
  readonly first: number;
  readonly last: number;
  readonly id: string;
  /** `host:port` */
  readonly address: string;
}

/**
 * Reads from a node of a cluster which masters have which slots.
 *
 * @param node - its URL, for a connection of its own
 * @throws an error if the reply is late or malformed, or lists no slots
 */
export async function readSlots(node: Redis | string, timeoutMs: number): Promise<readonly SlotRange[]> {
  if (typeof node !== 'string') return parseSlots(node, await withTimeout(node.cluster('SLOTS'), timeoutMs));
  const client = new Redis(node, clientOptions(timeoutMs)).on('error', () => undefined);
  try {
    await withTimeout(once(client, 'ready'), CONNECT_TIMEOUT_MS);
    return await readSlots(client, timeoutMs);
  } finally {
    client.disconnect();
  }
}

function parseSlots({ options }: Redis, reply: unknown): readonly SlotRange[] {
  requireForm(Array.isArray(reply) && reply.length <= SLOTS);
  if (reply.length === 0) throw new Error('no node of the cluster has slots');
  return reply.map((range: unknown) => {
    const [first, last, master] = listOf(range);
    requireForm(isBetween(first, 0, SLOTS - 1) && isBetween(last, first, SLOTS - 1));
    const [endpoint, port, id] = listOf(master);
    requireForm(endpoint === null || (typeof endpoint === 'string' && /^[\w.:-]*$/.test(endpoint)));
    requireForm(isBetween(port, 1, 65_535) && typeof id === 'string');
    // A node without an endpoint is where the one is that was asked.
    const host = endpoint === null || endpoint === '' ? (options.host ?? '') : endpoint;
    return { first, last, id, address: `${host.includes(':') ? `[${host}]` : host}:${port}` };
  });
}

function listOf(reply: unknown): readonly unknown[] {
  requireForm(Array.isArray(reply));
  return reply;
}

function isBetween(value: unknown, least: number, most: number): value is number {
  return Number.isInteger(value) && Number(value) >= least && Number(value) <= most;
}
