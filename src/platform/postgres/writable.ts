import { DatabaseUnavailable } from './errors.js';

/** Asks a server whether it takes writes. A standby, or a server set to read-only, does not. */
export const ASK_WRITABLE =
  "select pg_is_in_recovery() as is_standby, current_setting('transaction_read_only')::boolean as is_read_only";

/** The answer to {@link ASK_WRITABLE}. */
export interface Writability {
  readonly is_standby: boolean;
  /** Also true of a standby. */
  readonly is_read_only: boolean;
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

/** @throws DatabaseNotWritable when the server takes no writes */
export function requireWritable(answer: Writability | undefined): void {
  if (answer?.is_read_only !== false) throw new DatabaseNotWritable(answer?.is_standby === true);
}
