import { Agent } from 'node:http';
import { send } from '../request.js';

/** Requests that never cease, on several connections at once, one after the other on each. */
export interface Load {
  /** The status of each answer; undefined for a request without a whole one. */
  readonly statuses: (number | undefined)[];
  stop(): Promise<void>;
}

/** Begins to send requests for `/me`. */
export function startLoad(url: string, key: string, connections: number): Load {
  const statuses: (number | undefined)[] = [];
  let isOver = false;
  const loops = Array.from({ length: connections }, async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (!isOver) {
      const reply = await send(url, '/api/v1/me', { headers: { 'x-api-key': key }, agent }).catch(() => undefined);
      statuses.push(reply?.status);
    }
    agent.destroy();
  });
  return {
    statuses,
    async stop() {
      isOver = true;
      await Promise.all(loops);
    },
  };
}
