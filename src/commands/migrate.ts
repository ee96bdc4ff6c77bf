import { addJsonCommand } from './add-json-command.js';
import { connectForCommand } from './connections.js';
import type { RegisterCommand } from './context.js';
import { printJson, printLine } from './output.js';

export const registerMigrate: RegisterCommand = (program, context) => {
  addJsonCommand(program, 'migrate', 'DATABASE_URL=postgres://catalog@db/catalog catalog migrate')
    .description("bring the database's schema up to date")
    .action(async ({ json }: { json?: boolean }) => {
      const database = await connectForCommand(context, { migrate: true, bulk: true });
      await database.close();
      const { applied } = database;
      if (json) printJson(context.stdout, { applied });
      else if (applied.length === 0) printLine(context.stdout, 'The schema is up to date.');
      else printLine(context.stdout, `Applied ${applied.join(', ')}. The schema is up to date.`);
    });
};
