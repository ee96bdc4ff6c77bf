import type { RegisterCommand } from '../context.js';
import { addJsonCommand } from '../output/report.js';

export const registerMigrate: RegisterCommand = (program, context) => {
  addJsonCommand(program, 'migrate', 'DATABASE_URL=postgres://catalog@db/catalog catalog migrate')
    .description("Bring the database's schema up to date.")
    .reports(context, async () => {
      const applied = await context.withDatabase(async (_db, database) => database.applied, {
        migrate: true,
        bulk: true,
      });
      const changes = applied.length === 0 ? '' : `Applied ${applied.join(', ')}. `;
      return [{ applied }, `${changes}The schema is up to date.`];
    });
};
