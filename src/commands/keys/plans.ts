import { developersOnPlan, listPlans, setPlan, type Plan, type PlanChanges } from '../../limits/plans.js';
import { limitOf, QUOTA_NAMES, type QuotaName } from '../../limits/quotas.js';
import { planId, positiveInteger, text } from '../arguments.js';
import type { RegisterCommand } from '../context.js';
import { makeChange } from '../make-change.js';
import { addJsonCommand, reportRows, type JsonFlag } from '../output/report.js';
import { table, type Columns } from '../output/table.js';

interface SetOptions extends Partial<Record<`per${Capitalize<QuotaName>}`, number>> {
  name?: string;
  commercialUse?: boolean;
}

const COLUMNS: Columns<Plan> = {
  id: (plan) => plan.id,
  name: (plan) => plan.name,
  ...Object.fromEntries(QUOTA_NAMES.map((name) => [`per ${name}`, (plan: Plan) => limitOf(plan, name)])),
  'commercial use': (plan) => plan.commercialUse,
};

export const registerPlans: RegisterCommand = (program, context) => {
  const commands = program.command('plans').description('Manage the plans of keys.');

  addJsonCommand(commands, 'list', 'catalog plans list')
    .description('List all plans.')
    .action(({ json }: JsonFlag) =>
      reportRows(context, json, (db) => [listPlans(db)], { name: 'plans', columns: COLUMNS }),
    );

  addJsonCommand(commands, 'set', 'catalog plans set pro --per-minute 900')
    .description('Add or change a plan. Changes apply at once to its keys; omitted options keep their values.')
    .argument('<plan>', 'id of the plan', planId)
    .option('--name <name>', 'display name', text(100))
    .option('--per-minute <requests>', 'requests allowed in 60 seconds', positiveInteger)
    .option('--per-day <requests>', 'requests allowed in 86,400 seconds', positiveInteger)
    .option('--commercial-use', 'allow commercial use')
    .option('--no-commercial-use', 'do not allow commercial use')
    .reports(context, async (id: string, { name, perMinute, perDay, commercialUse }: SetOptions) => {
      const changes: PlanChanges = { name, requestsPerMinute: perMinute, requestsPerDay: perDay, commercialUse };
      const { plan, created } = await makeChange(
        context,
        (db) => setPlan(db, id, changes),
        (_, db) => developersOnPlan(db, id),
      );
      const heading = created ? `Added plan ${id}:` : `Plan ${id} is now as follows, for all its keys:`;
      return [{ plan, created }, `${heading}\n${table([plan], COLUMNS)}`];
    });
};
