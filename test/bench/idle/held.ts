import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Tally } from '../../support/http/kept-connections.js';
import type { Order, Report } from './holder.js';

const HOLDER = fileURLToPath(new URL('holder.ts', import.meta.url));

/** Connections that another process holds. */
export interface Held {
  /** Opens connections and sends a request on each. @returns how many of each status there were */
  hold(url: string, count: number, request: string): Promise<Tally>;
  /** Sends it on each again. */
  ask(): Promise<Tally>;
  /** Waits until the server has closed all of them. @returns how: `ended` in order, or the code of an error */
  watch(): Promise<Tally>;
  close(): Promise<Tally>;
  /** Ends the process. */
  end(): void;
}

/** Starts the process. */
export function startHolder(): Held {
  const child = fork(HOLDER);
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  const ended = once(child, 'exit').then(() => {
    throw new Error('The process that holds connections has ended');
  });
  // Each order has an answer.
  ended.catch(() => undefined);
  async function tell(order: Order): Promise<Report> {
    child.send(order);
    const [report] = (await Promise.race([once(child, 'message'), ended])) as [Report];
    return report;
  }
  return {
    hold: (url, count, request) => tell({ kind: 'hold', url, count, request }),
    ask: () => tell({ kind: 'ask' }),
    watch: () => tell({ kind: 'watch' }),
    close: () => tell({ kind: 'close' }),
    end() {
      process.removeListener('exit', kill);
      kill();
    },
  };
}
