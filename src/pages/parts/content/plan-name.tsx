import type { Knex } from 'knex';
import { createContext, type VNode } from 'preact';
import { useContext } from 'preact/hooks';
import { listPlans } from '../../../limits/plans.js';

type NamesById = ReadonlyMap<string, string>;

/** The name of every plan, for the parts of a page that have only its id. */
export const PlanNames = createContext<NamesById>(new Map());

/** @returns the name of every plan, by its id */
export async function readPlanNames(db: Knex): Promise<NamesById> {
  return new Map((await listPlans(db)).map(({ id, name }) => [id, name]));
}

/** The name of a plan; its id if the page was not given the name. */
export function PlanName({ id }: { readonly id: string }): VNode {
  return <>{useContext(PlanNames).get(id) ?? id}</>;
}
