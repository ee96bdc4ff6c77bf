/** What the floor is given in the environment, as JSON in `FLOOR`. */
export interface FloorSettings {
  readonly databaseUrl: string;
  readonly databasePoolSize: number;
  readonly redisUrl: string;
  /** The service's own script that charges a request, and the key of the epoch. */
  readonly chargeScript: string;
  readonly epochKey: string;
}
