import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import type { Config } from '../../config/settings.js';
import { OperatorError } from '../../errors.js';
import { urlOf } from '../../http/connection/server.js';
import { printable } from '../../platform/text/plain-text.js';
import type { RegisterCommand } from '../context.js';
import { addJsonCommand } from '../output/report.js';

/** Bound on the whole check, in milliseconds. A server bounds its own look at the database more tightly. */
const TIMEOUT_MS = 3_000;

const NOTES = `Requests /readyz of the server that HOST and PORT name. The exit code is 0 if the server is ready, also when it is degraded,
such as without its Redis. It is 1 if the server is not ready, is shutting down, or has not replied within
${TIMEOUT_MS / 1000} seconds.`;

/** The body of /readyz: when it is ready, and the problem when it is not. Another program on the port has neither. */
interface Readiness {
  readonly status?: string | number;
  readonly detail?: string;
  readonly reasons?: readonly { readonly detail: string }[];
}

export const registerHealth: RegisterCommand = (program, context) => {
  addJsonCommand(program, 'health', ['catalog health', 'PORT=9000 catalog health'], NOTES)
    .description('Check that the server on this machine is ready.')
    .reports(context, () => check(context.config()));
};

async function check({ host, port }: Config): Promise<readonly [document: object, text: string]> {
  if (port === 0) throw new OperatorError('PORT is 0, so the port of the server is not known. Set PORT to its number.');
  const url = urlOf(host, port);
  const { status, detail, reasons = [] } = await readReadiness(url);
  if (status !== 'ready' && status !== 'degraded') {
    throw new OperatorError(`The server on ${url} is not ready. ${printable(detail ?? 'Is it this service?')}`);
  }
  const details = reasons.map((reason) => ` ${printable(reason.detail)}`).join('');
  return [{ url, status, reasons }, `The server on ${url} is ${status}.${details}`];
}

/** By node:http, since fetch refuses some ports that a server may have, such as 6000. */
async function readReadiness(url: string): Promise<Readiness> {
  try {
    const request = get(`${url}/readyz`, { signal: AbortSignal.timeout(TIMEOUT_MS), agent: false });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return (await json(response)) ?? {};
  } catch (error) {
    const { message, cause } = error as Error;
    const reason = cause instanceof Error ? cause.message : message;
    throw new OperatorError(`The server on ${url} does not answer as expected: ${reason}`, { cause: error });
  }
}
