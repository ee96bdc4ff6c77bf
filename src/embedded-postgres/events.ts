/** What happens to the server, as told to whoever holds a lease on it. */
export type PostgresEvent =
  | 'postgres_started'
  | 'postgres_stopped'
  /** A lease was given back while others use the server. */
  | 'postgres_left_running'
  | 'postgres_stop_failed'
  /** A lease's connection broke. It is brought back in the background. */
  | 'postgres_lost'
  | 'postgres_back'
  | 'postgres_recovery_failed';

/** Told of an event with its details, which are never secret. */
export type EventListener = (event: PostgresEvent, detail: Record<string, unknown>) => void;
