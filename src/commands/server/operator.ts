import { createOperatorLink, operatorLinkUrl, LINK_LIFETIME_MINUTES } from '../../accounts/sign-in-links.js';
import type { Config } from '../../config/settings.js';
import { OperatorError } from '../../errors.js';
import { urlOf } from '../../http/connection/server.js';
import type { RegisterCommand } from '../context.js';
import { makeChange } from '../make-change.js';
import { addJsonCommand } from '../output/report.js';
import { readAddresses } from './server-addresses.js';

const NOTES = `The link leads to METRICS_ADDRESS on the machine of a server. For a server on another machine, forward the port first,
and keep that command running:

  ssh -L 9464:127.0.0.1:9464 HOST`;

/** `catalog operator sign-in-link` */
export const registerOperator: RegisterCommand = (program, context) => {
  const operator = program.command('operator').description('Open the operator pages.');

  addJsonCommand(operator, 'sign-in-link', 'catalog operator sign-in-link', NOTES)
    .description(
      `Print a link that signs you in to the operator pages. It works once, within ${LINK_LIFETIME_MINUTES} minutes.`,
    )
    .reports(context, async () => {
      const config = context.config();
      const running = await readAddresses(config, context.packageRoot);
      const origin = originOf(config, running?.operatorUrl);
      const token = await makeChange(context, createOperatorLink);
      const url = operatorLinkUrl(origin, token);
      const what = `Sign-in link for the operator pages. It works once, within ${LINK_LIFETIME_MINUTES} minutes. If your server has\nanother METRICS_ADDRESS, change the address in it. Keep it secret:`;
      return [{ url, expiresInSeconds: LINK_LIFETIME_MINUTES * 60 }, `${what}\n  ${url}`];
    });
};

/**
 * @param running - the origin that a running server has, if it is known
 * @returns the origin of the operator pages
 * @throws OperatorError if there are none, or at no fixed port
 */
function originOf({ metricsAddress, operatorPages }: Config, running: string | undefined): string {
  if (metricsAddress === undefined) {
    throw new OperatorError('There are no operator pages: METRICS_ADDRESS is off.', {
      advice: 'Set it to an address, such as :9464.',
    });
  }
  if (!operatorPages) throw new OperatorError('There are no operator pages: OPERATOR_PAGES is off.');
  if (running !== undefined) return running;
  const { host, port } = metricsAddress;
  if (port === 0) {
    throw new OperatorError('Set METRICS_ADDRESS to a fixed port: with port 0 the server chooses its own.');
  }
  return urlOf(host, port);
}
