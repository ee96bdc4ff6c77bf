import type { Knex } from 'knex';
import { notFoundError } from '../errors.js';
import { requirePlan } from '../limits/plans.js';

/** Somebody with access to the API. Keys belong to a developer, and limits count per developer. */
export interface Developer {
  readonly id: number;
  readonly projectName: string;
  readonly attributionRequired: boolean;
  /** The plan of keys that the developer creates. Later, the plan of each key may change. */
  readonly planId: string;
  readonly suspendedAt: string | null;
  readonly createdAt: string;
}

/** The longest name of a project, in characters as PostgreSQL counts them. */
export const MAX_PROJECT_NAME = 200;

/** The columns of a developer under the names of {@link Developer}. */
const DEVELOPER_COLUMNS = {
  id: 'id',
  projectName: 'project_name',
  attributionRequired: 'attribution_required',
  planId: 'plan_id',
  suspendedAt: 'suspended_at',
  createdAt: 'created_at',
} as const;

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

/** Which developers to list; by default all. */
interface DevelopersQuery {
  /** The last one of the part before. */
  readonly after?: Developer | undefined;
  /** A part of the project's name, in upper or lower case. */
  readonly search?: string | undefined;
  readonly limit?: number;
}

/** @returns developers, oldest first */
export async function listDevelopers(
  db: Knex,
  { after, search, limit }: DevelopersQuery = {},
): Promise<readonly Developer[]> {
  const query = db('developers').select<Developer[]>(DEVELOPER_COLUMNS).orderBy('id');
  if (after !== undefined) query.where('id', '>', after.id);
  if (search !== undefined) query.whereRaw('strpos(lower(project_name), lower(?)) > 0', [search]);
  return limit === undefined ? query : query.limit(limit);
}

/** @throws OperatorError when there is no such developer */
export async function findDeveloper(db: Knex, id: number): Promise<Developer> {
  const developer = await db('developers').where({ id }).first<Developer | undefined>(DEVELOPER_COLUMNS);
  if (developer === undefined) throw notFoundError('developer', id);
  return developer;
}

/**
 * Gives a developer's project another name. `/me` shows it from the next request.
 *
 * @throws OperatorError when there is no such developer
 */
export async function renameDeveloper(db: Knex, id: number, projectName: string): Promise<Developer> {
  return updateDeveloper(db, id, { project_name: projectName });
}

/**
 * Refuses all keys of a developer from the next request until reinstatement. Suspending twice keeps the first time.
 *
 * @throws OperatorError when there is no such developer
 */
export async function suspendDeveloper(db: Knex, id: number): Promise<Developer> {
  return updateDeveloper(db, id, { suspended_at: db.raw('coalesce(suspended_at, now())') });
}

/**
 * Accepts a suspended developer's keys again, except revoked and expired ones.
 *
 * @throws OperatorError when there is no such developer
 */
export async function reinstateDeveloper(db: Knex, id: number): Promise<Developer> {
  return updateDeveloper(db, id, { suspended_at: null });
}

/**
 * Sets the plan of keys that the developer creates from now on. Existing keys stay on their plan.
 *
 * @throws OperatorError when there is no such developer or plan
 */
export async function setDeveloperPlan(db: Knex, id: number, planId: string): Promise<Developer> {
  await requirePlan(db, planId);
  return updateDeveloper(db, id, { plan_id: planId });
}

async function updateDeveloper(db: Knex, id: number, change: object): Promise<Developer> {
  const [developer] = await db('developers').where({ id }).update(change).returning<Developer[]>(returning());
  if (developer === undefined) throw notFoundError('developer', id);
  return developer;
}

function returning(): string[] {
  return Object.entries(DEVELOPER_COLUMNS).map(([name, column]) => `${column} as ${name}`);
}
