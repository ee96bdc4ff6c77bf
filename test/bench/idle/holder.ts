import { KeptConnections, type Tally } from '../../support/http/kept-connections.js';

// A process of its own that holds connections: the server's clients, who take none of its time while they are idle.

/** The orders to the holder. */
export type Order =
  | { readonly kind: 'hold'; readonly url: string; readonly count: number; readonly request: string }
  | { readonly kind: 'ask' | 'watch' | 'close' };

/** What it answers: to `hold` and `ask`, what each was answered with; otherwise what has become of each. */
export type Report = Tally;

let connections: KeptConnections | undefined;

async function obey(order: Order): Promise<Report> {
  switch (order.kind) {
    case 'hold':
      connections = new KeptConnections(order.url, order.count, order.request);
      return connections.ask();
    case 'ask':
      return (await connections?.ask()) ?? {};
    case 'watch':
      return (await connections?.over()) ?? {};
    case 'close':
      connections?.close();
      return connections?.states ?? {};
  }
}

process.on('message', (order: Order) => {
  void obey(order).then((report) => process.send?.(report));
});
