import type { Redis } from 'ioredis';
import { withTimeout } from '../async/with-timeout.js';
import { requireForm } from './reply.js';

export const SLOTS = 16_384;

interface Node {
  readonly id: string;
  readonly host: string;
  readonly port: number;
}

/** Slots in a row, the last one included, and the nodes that have them, the master first. */
export interface SlotRange {
  readonly first: number;
  readonly last: number;
  readonly nodes: readonly [Node, ...Node[]];
}

/**
 * Reads from a node of a cluster which nodes have which slots.
 *
 * @throws an error if the reply is late or malformed, or lists no slots
 */
export async function readSlots(client: Redis, timeoutMs: number): Promise<readonly SlotRange[]> {
  const reply: unknown = await withTimeout(client.cluster('SLOTS'), timeoutMs);
  requireForm(Array.isArray(reply) && reply.length <= SLOTS);
  if (reply.length === 0) throw new Error('no node of the cluster has slots');
  return reply.map((range: unknown) => {
    const [first, last, master, ...replicas] = listOf(range);
    requireForm(isBetween(first, 0, SLOTS - 1) && isBetween(last, first, SLOTS - 1));
    const toNode = (node: unknown): Node => {
      const [endpoint, port, id] = listOf(node);
      requireForm(endpoint === null || (typeof endpoint === 'string' && /^[\w.:-]*$/.test(endpoint)));
      requireForm(isBetween(port, 1, 65_535) && typeof id === 'string');
      // A node without an endpoint is where the one is that was asked.
      return { id, port, host: endpoint === null || endpoint === '' ? (client.options.host ?? '') : endpoint };
    };
    return { first, last, nodes: [toNode(master), ...replicas.map(toNode)] };
  });
}

function listOf(reply: unknown): readonly unknown[] {
  requireForm(Array.isArray(reply));
  return reply;
}

function isBetween(value: unknown, least: number, most: number): value is number {
  return Number.isInteger(value) && Number(value) >= least && Number(value) <= most;
}
