import { connectForCommand } from '../connections.js';
import type { RegisterCommand } from '../context.js';
import { addJsonCommand, report, type JsonFlag } from '../output/report.js';

export const registerMigrate: RegisterCommand = (program, context) => {
  addJsonCommand(program, 'migrate', 'DATABASE_URL=postgres://catalog@db/catalog catalog migrate')
    .description("Bring the database's schema up to date.")
    .action(async ({ json }: JsonFlag) => {
      const database = await connectForCommand(context, { migrate: true, bulk: true });
      await database.close();
      const { applied } = database;
      const changes = applied.length === 0 ? '' : `Applied ${applied.join(', ')}. `;
      report(context.stdout, json, { applied }, `${changes}The schema is up to date.`);
    });
};
