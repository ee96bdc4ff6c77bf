import type { RegisterCommand } from '../context.js';
import { addJsonCommand, report, type JsonFlag } from '../output/report.js';

export const registerMigrate: RegisterCommand = (program, { stdout, withDatabase }) => {
  addJsonCommand(program, 'migrate', 'DATABASE_URL=postgres://catalog@db/catalog catalog migrate')
    .description("Bring the database's schema up to date.")
    .action(async ({ json }: JsonFlag) => {
      const applied = await withDatabase(async (_db, database) => database.applied, { migrate: true, bulk: true });
      const changes = applied.length === 0 ? '' : `Applied ${applied.join(', ')}. `;
      report(stdout, json, { applied }, `${changes}The schema is up to date.`);
    });
};
