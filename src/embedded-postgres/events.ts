/** What happens to the server, reported to each holder of a lease. */
export type PostgresEvent =
  | 'postgres_started'
  | 'postgres_stopped'
  /** A lease was released while others use the server. */
  | 'postgres_left_running'
  | 'postgres_stop_failed'
  /** The connection of a lease broke. The lease opens a new one in the background. */
  | 'postgres_lost'
  | 'postgres_back'
  | 'postgres_recovery_failed';

/** Called for an event with its details, which are never secret. */
export type EventListener = (event: PostgresEvent, detail: Record<string, unknown>) => void;
