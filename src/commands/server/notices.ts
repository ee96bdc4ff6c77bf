import { randomUUID } from 'node:crypto';
import { webhookOf } from '../../config/config.js';
import { OperatorError } from '../../errors.js';
import type { RegisterCommand } from '../context.js';
import { addJsonCommand } from '../output/report.js';

/** `catalog notices test` */
export const registerNotices: RegisterCommand = (program, context) => {
  const notices = program.command('notices').description('Check the notices that servers send to the operator.');
  addJsonCommand(notices, 'test', 'catalog notices test')
    .description('Send a notice of type notice.test to NOTIFY_URL, once.')
    .reports(context, async () => {
      const webhook = webhookOf(context.config());
      if (webhook === undefined) throw new OperatorError('Set NOTIFY_URL and NOTIFY_SECRET as for your servers.');
      const { messageId, sendNotice } = await import('../../notices/webhook.js');
      const notice = { id: randomUUID(), type: 'notice.test', occurredAt: new Date().toISOString(), data: {} };
      const delivery = await sendNotice(webhook, notice);
      if (delivery.kind === 'failed') {
        const advice = 'Check NOTIFY_URL and that its receiver answers with a status from 200 to 299.';
        throw new OperatorError(`The notice was not delivered: ${delivery.reason}.`, { advice });
      }
      const { status } = delivery;
      return [{ id: messageId(notice), status }, `The receiver accepted the notice with status ${status}.`];
    });
};
