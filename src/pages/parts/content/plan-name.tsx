import type { Knex } from 'knex';
import { createContext, type VNode } from 'preact';
import { useContext } from 'preact/hooks';
import { listPlans } from '../../../limits/plans.js';

type NamesById = ReadonlyMap<string, string>;

/** What every plan is called, for the parts of a page that have only its id. */
export const PlanNames = createContext<NamesById>(new Map());

/** @returns what every plan is called, by its id */
export async function readPlanNames(db: Knex): Promise<NamesById> {
  return new Map((await listPlans(db)).map(({ id, name }) => [id, name]));
}

/** What a plan is called. A plan that a page was not given the name of has its id. */
export function PlanName({ id }: { readonly id: string }): VNode {
  return <>{useContext(PlanNames).get(id) ?? id}</>;
}
