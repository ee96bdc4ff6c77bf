import type { Knex } from 'knex';
import { createDeveloper } from '../../../src/developers/developers.js';
import { createKey, type CreatedKey } from '../../../src/keys/keys.js';
import { setPlan } from '../../../src/limits/plans.js';

/** More requests than any test sends. */
export const UNLIMITED = 2_000_000_000;

/** The plan that no test uses up. */
const UNLIMITED_PLAN = {
  id: 'unlimited',
  name: 'Unlimited',
  requests_per_minute: UNLIMITED,
  requests_per_day: UNLIMITED,
  commercial_use: true,
};

/** Which key to create. */
export interface NewKey {
  /** By default a developer of its own. */
  readonly developerId?: number;
  /** By default the plan that no test uses up. */
  readonly planId?: string;
  readonly label?: string;
}

/** Creates a developer. @returns its id */
export async function newDeveloper(db: Knex, projectName = 'Test project'): Promise<number> {
  return (await createDeveloper(db, { projectName, attributionRequired: true })).id;
}

/** Creates a plan, or changes its limits. @returns its id */
export async function newPlan(
  db: Knex,
  id: string,
  requestsPerMinute = UNLIMITED,
  requestsPerDay = UNLIMITED,
): Promise<string> {
  await setPlan(db, id, { name: 'Plan', requestsPerMinute, requestsPerDay, commercialUse: false });
  return id;
}

/** Creates a key. */
export async function newKey(db: Knex, { developerId, planId, ...label }: NewKey = {}): Promise<CreatedKey> {
  if (planId === undefined) await db('plans').insert(UNLIMITED_PLAN).onConflict('id').ignore();
  const owner = developerId ?? (await newDeveloper(db));
  return createKey(db, { developerId: owner, planId: planId ?? UNLIMITED_PLAN.id, ...label });
}
