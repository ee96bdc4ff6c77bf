import { randomUUID } from 'node:crypto';
import { webhookOf } from '../../config/config.js';
import { OperatorError } from '../../errors.js';
import type { RegisterCommand } from '../context.js';
import { addJsonCommand, report, type JsonFlag } from '../output/report.js';

/** `catalog notices test` */
export const registerNotices: RegisterCommand = (program, { stdout, config }) => {
  const notices = program.command('notices').description('Check the notices that servers send to the operator.');
  addJsonCommand(notices, 'test', 'catalog notices test')
    .description('Send a notice of type notice.test to NOTIFY_URL, once.')
    .action(async ({ json }: JsonFlag) => {
      const webhook = webhookOf(config());
      if (webhook === undefined) throw new OperatorError('Set NOTIFY_URL and NOTIFY_SECRET as for your servers.');
      const { messageId, sendNotice } = await import('../../notices/webhook.js');
      const notice = { id: randomUUID(), type: 'notice.test', occurredAt: new Date().toISOString(), data: {} };
      const delivery = await sendNotice(webhook, notice);
      if (delivery.kind === 'failed') {
        const advice = 'Check NOTIFY_URL and that its receiver answers with a status from 200 to 299.';
        throw new OperatorError(`The notice was not delivered: ${delivery.reason}.`, { advice });
      }
      const { status } = delivery;
      const line = `The receiver accepted the notice with status ${status}.`;
      report(stdout, json, { id: messageId(notice), status }, line);
    });
};
