import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import type { Logger } from 'pino';
import { METRICS_MEDIA_TYPE, type Metrics } from '../../platform/telemetry/metrics.js';
import { methodNotAllowed } from '../response/problems.js';
import { close, createHttpServer, DEFAULT_SERVER_LIMITS, listen, urlOf, type Listener } from '../connection/server.js';

/** Scrapers are few and near. The default keep-alive outlasts the pause between two scrapes. */
const LIMITS = {
  ...DEFAULT_SERVER_LIMITS,
  headersTimeoutMs: 2_000,
  requestTimeoutMs: 2_000,
  stalledTimeoutMs: 10_000,
};

/** The most connections at a time; further ones are closed at once. */
const MAX_CONNECTIONS = 32;

/** How long a scrape may take to finish when the service stops, in milliseconds. */
const SHUTDOWN_GRACE_MS = 500;

const METRICS_PATH = '/metrics';

/** Names that nobody outside a network can define: those of containers, for example. */
const PRIVATE_NAME = /^(?:[^.]*|.*\.(?:internal|local|localhost))$/i;

const OTHER_HOST =
  'This server does not answer to this host name. Use its IP address or the name in METRICS_ADDRESS, or a name ' +
  'without a dot or in .internal, .local or .localhost.\n';

export interface MetricsServer {
  readonly url: string;
  /** Takes a bounded time. */
  close(): Promise<void>;
}

/**
 * Serves `/metrics` on a separate address, which clients of the API cannot reach. Port 0 is any free one.
 *
 * @param pages - answers all other paths; undefined for none
 * @param setting - the name of the setting with the address, for the error message
 * @throws OperatorError when the address is not available
 */
export async function serveMetrics(
  { host, port }: Readonly<{ host: string; port: number }>,
  source: Metrics,
  log: Pick<Logger, 'error'>,
  pages?: Listener,
  setting = 'METRICS_ADDRESS',
): Promise<MetricsServer> {
  const server = createHttpServer((request, response) => {
    if (!isTrustedHost(request.headers.host, host)) end(response, 421, OTHER_HOST);
    else if (pages === undefined || pathOf(request) === METRICS_PATH) void answer(request, response, source, log);
    else pages(request, response);
  }, LIMITS);
  server.maxConnections = MAX_CONNECTIONS;
  const chosen = await listen(server, host, port, setting);
  return { url: urlOf(host, chosen) + METRICS_PATH, close: () => close(server, SHUTDOWN_GRACE_MS) };
}

/**
 * Whether a request names this server by an address, by a private name, or by the configured one. A browser on the
 * network sends any other name for a site whose owner has pointed it here, to read the answers (DNS rebinding).
 */
export function isTrustedHost(field: string | undefined, configured: string): boolean {
  const name = field?.replace(/:\d*$/, '').replace(/^\[([\da-f:.]+)\]$/i, '$1') ?? '';
  return name === configured || isIP(name) > 0 || PRIVATE_NAME.test(name);
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  source: Metrics,
  log: Pick<Logger, 'error'>,
): Promise<void> {
  response.setHeader('Cache-Control', 'no-store');
  if (pathOf(request) !== METRICS_PATH) {
    end(response, 404, 'This address has only /metrics.\n');
  } else if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('Allow', 'GET, HEAD');
    end(response, 405, `${methodNotAllowed().detail}\n`);
  } else {
    try {
      end(response, 200, await source.text(), METRICS_MEDIA_TYPE);
    } catch (error) {
      log.error({ err: error }, 'metrics could not be read');
      end(response, 500, 'The metrics could not be read. The cause is in the log.\n');
    }
  }
}

function pathOf({ url }: IncomingMessage): string | undefined {
  return url?.split('?', 1)[0];
}

function end(response: ServerResponse, status: number, text: string, contentType = 'text/plain; charset=utf-8'): void {
  response.statusCode = status;
  response.setHeader('Content-Type', contentType);
  response.setHeader('Content-Length', Buffer.byteLength(text));
  response.end(text);
}
