import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A network between a server and what it connects to, that can be made bad. */
export class TcpProxy {
  /** Every reply is held up for this long, in milliseconds. */
  delayMs = 0;
  readonly #links = new Set<readonly [Socket, Socket]>();
  readonly #server = createServer((client) => {
    const upstream = connect(Number(this.target.port), this.target.hostname);
    const link = [client, upstream] as const;
    this.#links.add(link);
    client.on('data', (data) => upstream.write(data));
    // One after the other: a connection never changes the order of what it carries.
    let last: Promise<unknown> = Promise.resolve();
    upstream.on('data', (data) => {
      const arrival = this.delayMs === 0 ? undefined : delay(this.delayMs);
      last = last.then(() => arrival).then(() => client.write(data));
    });
    for (const socket of link) {
      socket.setNoDelay(true);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.#links.delete(link);
        for (const each of link) each.destroy();
      });
    }
  });

  private constructor(private target: URL) {}

  static async start(target: string): Promise<TcpProxy> {
    const proxy = new TcpProxy(new URL(target));
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  /** The target's URL, with the proxy's address in it. */
  get url(): string {
    const url = new URL(this.target);
    url.hostname = '127.0.0.1';
    url.port = String((this.#server.address() as AddressInfo).port);
    return url.href;
  }

  /**
   * Swallows all that is sent on the connections there are, and closes none; new ones work.
   *
   * @returns ends these connections, as the keep-alive of either end does after a while
   */
  swallow(): () => void {
    const links = [...this.#links];
    for (const socket of links.flat()) socket.pause();
    return () => {
      for (const socket of links.flat()) socket.destroy();
    };
  }

  /** Leads new connections elsewhere, as a changed DNS record does. Those there are stay where they are. */
  leadTo(target: string): void {
    this.target = new URL(target);
  }

  /** Ends the connections there are, as a virtual address that moves does. */
  cut(): void {
    for (const link of this.#links) for (const socket of link) socket.destroy();
  }

  async stop(): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
