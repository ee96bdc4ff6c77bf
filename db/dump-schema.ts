import { writeFile } from 'node:fs/promises';
import { dumpSchema } from './schema.js';
import { createTestDatabase } from '../test/support/postgres.js';

// Writes db/schema.sql: what the migrations add up to, for reading and for seeing what a migration changes. The
// database comes from the embedded PostgreSQL and goes away with this process.
const database = await createTestDatabase();
await writeFile(new URL('schema.sql', import.meta.url), await dumpSchema(database.url));
await database.drop();
process.exit();
