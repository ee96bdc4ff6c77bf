import { isAccepted, stateOf, type KeyRecord } from '../../keys/key-record.js';
import { age, shortTime, type Columns } from '../output/table.js';

/** The columns of a table of keys. */
export const KEY_COLUMNS: Columns<KeyRecord> = {
  prefix: ({ prefix }) => prefix,
  developer: ({ developerId }) => developerId,
  plan: (record) => record.planId,
  label: ({ label }) => label,
  created: ({ createdAt }) => age(createdAt),
  'last used': ({ lastUsedAt }) => age(lastUsedAt),
  expires: ({ expiresAt }) => age(expiresAt),
  state: stateText,
};

/** Whether the key would be accepted if its developer were not suspended. */
function isOnlySuspended(record: KeyRecord): boolean {
  return record.isSuspended && isAccepted(record);
}

function stateText(record: KeyRecord): string {
  if (isOnlySuspended(record)) return 'suspended';
  const state = stateOf(record);
  switch (state.kind) {
    case 'rolled':
      return `rolled to ${state.successor.prefix}${state.successor.isActive ? '' : ' (no longer active)'}`;
    case 'revoked':
      return `revoked ${shortTime(state.at) ?? ''}`;
    case 'active':
    case 'expired':
      return state.kind;
  }
}

/** @returns a key as `--json` prints it */
export function keyDocument(record: KeyRecord): object {
  const { prefix, developerId, planId: plan, label, createdAt, lastUsedAt, expiresAt, successor, revokedAt } = record;
  return {
    keyPrefix: prefix,
    developerId,
    planId: plan,
    label,
    state: isOnlySuspended(record) ? 'suspended' : stateOf(record).kind,
    createdAt,
    lastUsedAt,
    expiresAt,
    successor: successor?.prefix ?? null,
    successorActive: successor?.isActive ?? null,
    revokedAt,
  };
}
