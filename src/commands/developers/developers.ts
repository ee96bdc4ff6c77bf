import {
  createDeveloper,
  listDevelopers,
  reinstateDeveloper,
  setDeveloperPlan,
  suspendDeveloper,
} from '../../developers/developers.js';
import { addJsonCommand } from '../add-json-command.js';
import { planId, positiveInteger, text } from '../arguments.js';
import { changeCallers } from '../change-callers.js';
import type { RegisterCommand } from '../context.js';
import { printJson, printLine, printTable, shortTime, toSnakeCase } from '../output.js';
import { registerSignIn } from './sign-in.js';

/** `catalog developers create|list|set-plan|suspend|reinstate`, and what {@link registerSignIn} adds */
export const registerDevelopers: RegisterCommand = (program, context) => {
  const { stdout, withDatabase, command } = context;
  const developers = program.command('developers').description('those who registered for access');

  addJsonCommand(developers, 'create', 'catalog developers create --project-name "Film club"')
    .description('register a developer')
    .requiredOption('--project-name <name>', 'what the developer builds; shown by /api/v1/me', text(200))
    .option('--attribution-required', 'the project must name the catalogue as its source', false)
    .action(async (options: { projectName: string; attributionRequired: boolean; json?: boolean }) => {
      const developer = await withDatabase((db) => createDeveloper(db, options));
      if (options.json) printJson(stdout, { developer: toSnakeCase(developer) });
      else {
        printLine(stdout, `Created developer ${developer.id}. Next: a key for it:`);
        printLine(stdout, `  ${command} keys create --developer ${developer.id} --plan free`);
      }
    });

  addJsonCommand(developers, 'list', 'catalog developers list')
    .description('list all developers')
    .action(async ({ json }: { json?: boolean }) => {
      const rows = await withDatabase(listDevelopers);
      if (json) printJson(stdout, { developers: rows.map(toSnakeCase) });
      else {
        printTable(stdout, rows, {
          id: ({ id }) => id,
          'project name': ({ projectName }) => projectName,
          plan: ({ planId: plan }) => plan,
          'attribution required': ({ attributionRequired }) => attributionRequired,
          created: ({ createdAt }) => shortTime(createdAt),
          suspended: ({ suspendedAt }) => shortTime(suspendedAt),
        });
      }
    });

  addJsonCommand(developers, 'set-plan', 'catalog developers set-plan 1 --plan pro')
    .description('set the plan of the keys that a developer makes. Keys that exist stay on theirs')
    .argument('<id>', 'id of the developer', positiveInteger)
    .requiredOption('--plan <plan>', 'the plan of the keys to come', planId)
    .addHelpText('after', '\nA key that exists is moved by "catalog keys set-plan".')
    .action(async (id: number, { plan, json }: { plan: string; json?: boolean }) => {
      const developer = await withDatabase((db) => setDeveloperPlan(db, id, plan));
      if (json) printJson(stdout, { developer: toSnakeCase(developer) });
      else printLine(stdout, `Keys that developer ${id} makes from now on are on plan ${plan}.`);
    });

  addJsonCommand(developers, 'suspend', 'catalog developers suspend 1')
    .description("refuse all of a developer's keys from the next request on")
    .argument('<id>', 'id of the developer', positiveInteger)
    .action(async (id: number, { json }: { json?: boolean }) => {
      const { changed: developer } = await changeCallers(context, (db) => suspendDeveloper(db, id));
      if (json) printJson(stdout, { developer: toSnakeCase(developer) });
      else printLine(stdout, `Suspended developer ${id}. To undo: catalog developers reinstate ${id}`);
    });

  addJsonCommand(developers, 'reinstate', 'catalog developers reinstate 1')
    .description("let a suspended developer's keys work again, except those that were revoked or have expired")
    .argument('<id>', 'id of the developer', positiveInteger)
    .action(async (id: number, { json }: { json?: boolean }) => {
      const { changed: developer } = await changeCallers(context, (db) => reinstateDeveloper(db, id));
      if (json) printJson(stdout, { developer: toSnakeCase(developer) });
      else printLine(stdout, `Reinstated developer ${id}.`);
    });

  registerSignIn(developers, context);
};
