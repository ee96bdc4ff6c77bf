import type { Knex } from 'knex';
import { OperatorError } from '../errors.js';

/** Who registered for access. Keys belong to a developer, and so do the limits. */
export interface Developer {
  readonly id: number;
  readonly projectName: string;
  readonly attributionRequired: boolean;
  readonly suspendedAt: string | null;
  readonly createdAt: string;
}

/** The columns of a developer under the names of {@link Developer}. */
const DEVELOPER_COLUMNS = {
  id: 'id',
  projectName: 'project_name',
  attributionRequired: 'attribution_required',
  suspendedAt: 'suspended_at',
  createdAt: 'created_at',
} as const;

/** Registers a developer. */
export async function createDeveloper(
  db: Knex,
  details: Pick<Developer, 'projectName' | 'attributionRequired'>,
): Promise<Developer> {
  const [developer] = await db('developers')
    .insert({ project_name: details.projectName, attribution_required: details.attributionRequired })
    .returning<Developer[]>(returning());
  if (developer === undefined) throw new Error('INSERT … RETURNING returned no row');
  return developer;
}

/** @returns every developer, oldest first */
export async function listDevelopers(db: Knex): Promise<readonly Developer[]> {
  return db('developers').select<Developer[]>(DEVELOPER_COLUMNS).orderBy('id');
}

/**
 * Refuses all of a developer's keys from the next request on, until reinstated. Suspending twice keeps the first time.
 *
 * @throws OperatorError when there is no such developer
 */
export async function suspendDeveloper(db: Knex, id: number): Promise<Developer> {
  return updateDeveloper(db, id, { suspended_at: db.raw('coalesce(suspended_at, now())') });
}

/**
 * Lets a suspended developer's keys work again, save those that were revoked.
 *
 * @throws OperatorError when there is no such developer
 */
export async function reinstateDeveloper(db: Knex, id: number): Promise<Developer> {
  return updateDeveloper(db, id, { suspended_at: null });
}

async function updateDeveloper(db: Knex, id: number, change: object): Promise<Developer> {
  const [developer] = await db('developers').where({ id }).update(change).returning<Developer[]>(returning());
  if (developer === undefined) {
    throw new OperatorError(`There is no developer ${id}. "catalog developers list" shows them all.`);
  }
  return developer;
}

function returning(): string[] {
  return Object.entries(DEVELOPER_COLUMNS).map(([name, column]) => `${column} as ${name}`);
}
