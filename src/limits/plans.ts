import type { Knex } from 'knex';
import { notFoundError, OperatorError } from '../errors.js';

/** The limits and terms of a key. Plans are data: the operator edits them. */
export interface Plan {
  /** `^[a-z][a-z0-9_-]{0,31}$` */
  readonly id: string;
  readonly name: string;
  readonly requestsPerMinute: number;
  readonly requestsPerDay: number;
  readonly commercialUse: boolean;
}

/** The id of the plan that a new developer is on: the default of the column `developers.plan_id`. */
export const FIRST_PLAN = 'free';

/** The columns of a plan under the names of {@link Plan}. */
export const PLAN_COLUMNS = {
  id: 'plans.id',
  name: 'plans.name',
  requestsPerMinute: 'plans.requests_per_minute',
  requestsPerDay: 'plans.requests_per_day',
  commercialUse: 'plans.commercial_use',
} as const satisfies Record<keyof Plan, `plans.${string}`>;

/** A plan under the names of its columns. */
export type PlanRow = {
  readonly [
    Member in keyof Plan as (typeof PLAN_COLUMNS)[Member] extends `plans.${infer Name}` ? Name : never
  ]: Plan[Member];
};

/** The new values of a plan. Undefined ones do not change. */
export type PlanChanges = { readonly [Member in keyof Omit<Plan, 'id'>]: Plan[Member] | undefined };

/** @returns every plan, smallest first */
export async function listPlans(db: Knex): Promise<readonly Plan[]> {
  return db('plans').select<Plan[]>(PLAN_COLUMNS).orderBy(['requests_per_minute', 'id']);
}

/** @throws OperatorError when there is no such plan */
export async function requirePlan(db: Knex, id: string): Promise<void> {
  const row: unknown = await db('plans').where({ id }).first(db.raw('1'));
  if (row === undefined) throw notFoundError('plan', id);
}

/**
 * Changes a plan, or adds one.
 *
 * @returns the plan after the change, and whether it is new
 * @throws OperatorError when a new plan lacks a value
 */
export async function setPlan(
  db: Knex,
  id: string,
  changes: Partial<PlanChanges>,
): Promise<{ plan: Plan; created: boolean }> {
  return db.transaction(async (transaction) => {
    const existing = await transaction('plans').select<Plan[]>(PLAN_COLUMNS).where({ id }).forUpdate().first();
    const given = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
    const plan = { ...existing, ...given, id };
    if (!isComplete(plan)) {
      throw new OperatorError(`There is no plan "${id}" yet.`, {
        advice: 'To add it, use --name, --per-minute, --per-day and --commercial-use or --no-commercial-use.',
        kind: 'not_found',
      });
    }
    const row: PlanRow = {
      id,
      name: plan.name,
      requests_per_minute: plan.requestsPerMinute,
      requests_per_day: plan.requestsPerDay,
      commercial_use: plan.commercialUse,
    };
    await transaction('plans').insert(row).onConflict('id').merge();
    return { plan, created: existing === undefined };
  });
}

/** @returns the ids of the developers who have keys on a plan */
export async function developersOnPlan(db: Knex, id: string): Promise<number[]> {
  return db('api_keys').distinct().where({ plan_id: id }).whereNull('revoked_at').pluck('developer_id');
}

function isComplete(plan: Partial<Plan> & { id: string }): plan is Plan {
  return (Object.keys(PLAN_COLUMNS) as (keyof Plan)[]).every((member) => plan[member] !== undefined);
}
