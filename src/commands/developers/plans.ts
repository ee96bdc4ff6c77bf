import { listPlans, setPlan, type Plan } from '../../limits/plans.js';
import { addJsonCommand } from '../add-json-command.js';
import { planId, positiveInteger, text } from '../arguments.js';
import { changeCallers } from '../change-callers.js';
import type { RegisterCommand } from '../context.js';
import { printJson, printLine, printTable, toSnakeCase, type Columns } from '../output.js';

interface SetOptions {
  name?: string;
  perMinute?: number;
  perDay?: number;
  commercialUse?: boolean;
  json?: boolean;
}

const COLUMNS: Columns<Plan> = {
  id: (plan) => plan.id,
  name: (plan) => plan.name,
  'per minute': (plan) => plan.requestsPerMinute,
  'per day': (plan) => plan.requestsPerDay,
  'commercial use': (plan) => plan.commercialUse,
};

export const registerPlans: RegisterCommand = (program, context) => {
  const { stdout, withDatabase } = context;
  const plans = program.command('plans').description('the plans that keys are tied to');

  addJsonCommand(plans, 'list', 'catalog plans list')
    .description('list all plans')
    .action(async ({ json }: { json?: boolean }) => {
      const rows = await withDatabase(listPlans);
      if (json) printJson(stdout, { plans: rows.map(toSnakeCase) });
      else printTable(stdout, rows, COLUMNS);
    });

  addJsonCommand(plans, 'set', 'catalog plans set pro --per-minute 900')
    .description('change a plan, or add one; what is left out stays as it is. Holds from the next request on')
    .argument('<plan>', 'id of the plan', planId)
    .option('--name <name>', 'name for people', text(100))
    .option('--per-minute <requests>', 'requests allowed in 60 seconds', positiveInteger)
    .option('--per-day <requests>', 'requests allowed in 86,400 seconds', positiveInteger)
    .option('--commercial-use', 'allow commercial use')
    .option('--no-commercial-use', 'do not allow commercial use')
    .action(async (id: string, { name, perMinute, perDay, commercialUse, json }: SetOptions) => {
      const { changed } = await changeCallers(context, (db) =>
        setPlan(db, id, {
          ...(name !== undefined && { name }),
          ...(perMinute !== undefined && { requestsPerMinute: perMinute }),
          ...(perDay !== undefined && { requestsPerDay: perDay }),
          ...(commercialUse !== undefined && { commercialUse }),
        }),
      );
      const { plan, created } = changed;
      if (json) printJson(stdout, { plan: toSnakeCase(plan), created });
      else {
        printLine(stdout, created ? `Added plan ${id}:` : `Plan ${id} is now:`);
        printTable(stdout, [plan], COLUMNS);
      }
    });
};
