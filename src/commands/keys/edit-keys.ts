import type { Command } from 'commander';
import { setKeyExpiry, setKeyLabel, setKeyPlan } from '../../keys/edit-key.js';
import type { Expiry } from '../../keys/expiry.js';
import { expiryOrNever, labelOrNone, planId } from '../arguments.js';
import type { CommandContext } from '../context.js';
import { makeChange, UNCACHED } from '../make-change.js';
import { addJsonCommand, report, type JsonFlag } from '../output/report.js';
import { shortTime } from '../output/table.js';
import { PREFIX_HELP, prefixOf } from './key-argument.js';
import { keyDocument } from './key-document.js';

/** `catalog keys set-plan|set-label|set-expiry` */
export function registerKeyEdits(keys: Command, context: CommandContext): void {
  const { stdout } = context;

  addJsonCommand(keys, 'set-plan', 'catalog keys set-plan svc_1a2B3c4D --plan pro')
    .description('Move a key to another plan. Applies from the next request.')
    .argument('<prefix>', PREFIX_HELP)
    .requiredOption('--plan <plan>', 'plan that sets its limits', planId)
    .action(async (argument: string, { plan, json }: { plan: string } & JsonFlag, command: Command) => {
      const prefix = prefixOf(argument, command);
      const { result, applies } = await makeChange(context, (db) => setKeyPlan(db, prefix, plan));
      const { before, after } = result;
      const changed = before.planId !== plan;
      const moved = `Moved ${prefix} from plan ${before.planId} to ${plan}. The new plan applies ${applies}.`;
      const line = changed ? moved : `Key ${prefix} is already on plan ${plan}.`;
      report(stdout, json, { ...keyDocument(after), changed }, line);
    });

  addJsonCommand(keys, 'set-label', [
    'catalog keys set-label svc_1a2B3c4D "production, eu-west"',
    'catalog keys set-label svc_1a2B3c4D ""',
  ])
    .description('Change the label of an active key.')
    .argument('<prefix>', PREFIX_HELP)
    .argument('<label>', 'new label; "" removes it', labelOrNone)
    .action(async (argument: string, label: string | null, { json }: JsonFlag, command: Command) => {
      const prefix = prefixOf(argument, command);
      const { result } = await makeChange(context, (db) => setKeyLabel(db, prefix, label), UNCACHED);
      const changed = result.before.label !== label;
      const has = `${changed ? 'now' : 'already'} has ${label === null ? 'no label' : `the label "${label}"`}`;
      report(stdout, json, { ...keyDocument(result.after), changed }, `Key ${prefix} ${has}.`);
    });

  addJsonCommand(
    keys,
    'set-expiry',
    ['90d', '2027-01-31T18:00Z', 'never'].map((when) => `catalog keys set-expiry svc_1a2B3c4D ${when}`),
    'A key that has expired stays expired. To end a key at once, use "catalog keys revoke".',
  )
    .description('Change when an active key expires, to an earlier or a later time.')
    .argument('<prefix>', PREFIX_HELP)
    .argument('<when>', 'a duration from now such as 90d, a date or time in UTC, or never', expiryOrNever)
    .action(async (argument: string, when: Expiry | 'never', { json }: JsonFlag, command: Command) => {
      const prefix = prefixOf(argument, command);
      const expires = when === 'never' ? null : when;
      const { result, applies } = await makeChange(context, (db) => setKeyExpiry(db, prefix, expires));
      const { before, after } = result;
      const changed = before.expiresAt !== after.expiresAt;
      const expiry = after.expiresAt === null ? 'never expires' : `expires at ${shortTime(after.expiresAt) ?? ''}`;
      const line = changed
        ? `Key ${prefix} now ${expiry}. This applies ${applies}.`
        : `Key ${prefix} already ${expiry}.`;
      report(stdout, json, { ...keyDocument(after), changed }, line);
    });
}
