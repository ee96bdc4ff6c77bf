import { DatabaseUnavailable } from './errors.js';

/**
 * Reads whether a server takes writes, and which timeline of which database it has. A standby, or a server set to
 * read-only, takes no writes. A primary reports its timeline as of now, a standby that of what it has written to disk.
 */
export const READ_STATE = `select pg_is_in_recovery() as is_standby,
       current_setting('transaction_read_only')::boolean as is_read_only,
       (select system_identifier::text from pg_control_system()) as system,
       case when pg_is_in_recovery() then (select greatest(timeline_id, min_recovery_end_timeline) from pg_control_checkpoint(), pg_control_recovery())
            else ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer end as timeline`;

/** The answer to {@link READ_STATE}. */
export interface ServerState {
  readonly is_standby: boolean;
  /** Also true of a standby. */
  readonly is_read_only: boolean;
  readonly system: string;
  readonly timeline: number;
}

/** A server takes no writes where the primary should be. A standby may be out of date: a revoked key may work there. */
export class DatabaseNotWritable extends DatabaseUnavailable {
  override readonly name = 'DatabaseNotWritable';

  constructor(readonly isStandby: boolean) {
    super(
      isStandby
        ? 'the database is a standby, which may not know the latest changes'
        : 'the database takes no writes: default_transaction_read_only is on',
    );
  }
}
