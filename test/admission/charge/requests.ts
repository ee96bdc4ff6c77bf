import type { ConditionalCharge, QuotaRequest } from '../../../src/admission/charge/limiter.js';

let developers = 0;

/** @returns the id of a developer that no other test uses */
export function newDeveloper(): number {
  developers += 1;
  return developers;
}

export function requestOf(
  developerId: number,
  requestsPerMinute: number,
  requestsPerDay: number,
  id = 'p',
): QuotaRequest {
  return { developerId, plan: { id, name: 'P', requestsPerMinute, requestsPerDay, commercialUse: false } };
}

/** What was decided, and what is left of the minute and of the day: `charged 59 9999`. */
export function inShort(charge: ConditionalCharge): string {
  if (charge.kind === 'unconfirmed') return `unconfirmed ${charge.epoch}`;
  return [charge.kind, ...charge.quotas.map(({ remaining }) => remaining)].join(' ');
}
