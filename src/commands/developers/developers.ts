import type { Command } from 'commander';
import type { Knex } from 'knex';
import {
  createDeveloper,
  listDevelopers,
  reinstateDeveloper,
  renameDeveloper,
  setDeveloperPlan,
  suspendDeveloper,
  type Developer,
} from '../../developers/developers.js';
import { readChunks } from '../../platform/async/chunks.js';
import { DEVELOPER, planId, positiveInteger, projectName } from '../arguments.js';
import type { CommandContext, RegisterCommand } from '../context.js';
import { makeChange } from '../make-change.js';
import { addJsonCommand, reportRows, type JsonFlag } from '../output/report.js';
import { age, type Columns } from '../output/table.js';
import { registerQuotas } from './quotas.js';
import { registerSignIn } from './sign-in.js';

const COLUMNS: Columns<Developer> = {
  id: ({ id }) => id,
  'project name': (developer) => developer.projectName,
  plan: (developer) => developer.planId,
  attribution: ({ attributionRequired }) => attributionRequired,
  created: ({ createdAt }) => age(createdAt),
  suspended: ({ suspendedAt }) => age(suspendedAt),
};

/** `catalog developers create|list|rename|set-plan|suspend|reinstate`, and the commands of the other files */
export const registerDevelopers: RegisterCommand = (program, context) => {
  const developers = program.command('developers').description('Manage the developers who have access.');
  addCreate(developers, context);
  addList(developers, context);
  addEdits(developers, context);
  registerQuotas(developers, context);
  registerSignIn(developers, context);
};

function addCreate(developers: Command, context: CommandContext): void {
  addJsonCommand(developers, 'create', 'catalog developers create --project-name "Film club"')
    .description('Register a developer.')
    .requiredOption('--project-name <name>', 'name of the project; /api/v1/me shows it', projectName)
    .option('--attribution-required', 'require the project to credit the catalogue where it shows its data', false)
    .reports(context, async (options: { projectName: string; attributionRequired: boolean }) => {
      const developer = await makeChange(context, (db) => createDeveloper(db, options));
      const { id, planId } = developer;
      const next = `${context.command} keys create --developer ${id} --plan ${planId}`;
      return [{ developer }, `Created developer ${id}. Next, create a key:\n  ${next}`];
    });
}

function addList(developers: Command, context: CommandContext): void {
  addJsonCommand(developers, 'list', ['catalog developers list', 'catalog developers list --search film --limit 20'])
    .description('List developers, oldest first.')
    .option('--search <text>', 'only those with this text in the name of their project, in upper or lower case')
    .option('--limit <number>', 'maximum number of developers; all without it', positiveInteger)
    .action(({ search, limit = Infinity, json }: { search?: string; limit?: number } & JsonFlag) => {
      const read = (db: Knex) =>
        readChunks<Developer>(limit, (after, most) => listDevelopers(db, { after, search, limit: most }));
      return reportRows(context, json, read, { name: 'developers', columns: COLUMNS });
    });
}

function addEdits(developers: Command, context: CommandContext): void {
  addJsonCommand(developers, 'rename', 'catalog developers rename 1 "Film club Berlin"')
    .description("Change the name of a developer's project.")
    .argument(...DEVELOPER)
    .argument('<name>', 'new name of the project; /api/v1/me shows it', projectName)
    .reports(context, async (id: number, name: string) => {
      const developer = await makeChange(context, (db) => renameDeveloper(db, id, name), idOf);
      return [{ developer }, `Renamed the project of developer ${id} to "${name}".`];
    });

  const setPlanNotes = 'To move an existing key, use "catalog keys set-plan".';
  addJsonCommand(developers, 'set-plan', 'catalog developers set-plan 1 --plan pro', setPlanNotes)
    .description('Set the plan of keys that a developer creates from now on. Existing keys stay on their plan.')
    .argument(...DEVELOPER)
    .requiredOption('--plan <plan>', 'plan of new keys', planId)
    .reports(context, async (id: number, { plan }: { plan: string }) => {
      const developer = await makeChange(context, (db) => setDeveloperPlan(db, id, plan));
      return [{ developer }, `New keys of developer ${id} are on plan ${plan}.`];
    });

  addJsonCommand(developers, 'suspend', 'catalog developers suspend 1')
    .description("Refuse all of a developer's keys.")
    .argument(...DEVELOPER)
    .reports(context, async (id: number) => {
      const developer = await makeChange(context, (db) => suspendDeveloper(db, id), idOf);
      const undo = `${context.command} developers reinstate ${id}`;
      return [{ developer }, `Suspended developer ${id}. Their keys are refused from now on. To undo: ${undo}`];
    });

  const exceptions = 'except revoked and expired ones';
  addJsonCommand(developers, 'reinstate', 'catalog developers reinstate 1')
    .description(`Accept a suspended developer's keys again, ${exceptions}.`)
    .argument(...DEVELOPER)
    .reports(context, async (id: number) => {
      const developer = await makeChange(context, (db) => reinstateDeveloper(db, id), idOf);
      return [{ developer }, `Reinstated developer ${id}. Their keys are accepted again, ${exceptions}.`];
    });
}

function idOf({ id }: Developer): readonly number[] {
  return [id];
}
