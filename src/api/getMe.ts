import type { PlanRow } from '../limits/plans.js';
import { operation } from './operation.js';

export const getMe = operation('getMe', { cache: 'never' }, (_dependencies, { caller }) => ({
  data: {
    project_name: caller.projectName,
    key_prefix: caller.keyPrefix,
    plan: {
      id: caller.plan.id,
      name: caller.plan.name,
      requests_per_minute: caller.plan.requestsPerMinute,
      requests_per_day: caller.plan.requestsPerDay,
      commercial_use: caller.plan.commercialUse,
    } satisfies PlanRow,
    attribution_required: caller.attributionRequired,
  },
}));
