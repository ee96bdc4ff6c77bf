import { stateOf, type KeyRecord } from '../../keys/key-record.js';
import { shortTime } from '../output.js';

export function describeState(record: KeyRecord): string {
  const state = stateOf(record);
  switch (state.kind) {
    case 'rolled':
      return `rolled, replaced by ${state.successor.prefix}${state.successor.isActive ? '' : ', no longer active'}`;
    case 'revoked':
      return `revoked ${shortTime(state.at) ?? ''}`;
    case 'active':
    case 'expired':
      return state.kind;
  }
}

export function keyToJson(record: KeyRecord): Record<string, unknown> {
  return {
    key_prefix: record.prefix,
    developer_id: record.developerId,
    plan_id: record.planId,
    label: record.label,
    state: stateOf(record).kind,
    created_at: record.createdAt,
    last_used_at: record.lastUsedAt,
    expires_at: record.expiresAt,
    successor: record.successor?.prefix ?? null,
    successor_active: record.successor?.isActive ?? null,
    revoked_at: record.revokedAt,
  };
}
